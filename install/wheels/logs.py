"""What the tools print while they install: kept in the environment, under `.envcheck/logs/`, safe to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import safe_text
from .. import processes

OWN = ".envcheck"  # the folder in an environment that is envcheck's


def path(directory: Path, name: str) -> Path:
    return directory / OWN / "logs" / name


def run(
    argv: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str],
    deadline: float,
    seen: Callable[[list[str]], None] = lambda lines: None,
    watch: Callable[[int], None] | None = None,
) -> Any:
    """Run one program and append its output to the log: a ``process.Result``.

    deadline: seconds. seen: gets the lines as they come. watch: as in ``processes.run``.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab", buffering=0) as file:
        start = file.tell()

        def tick(lines: list[str]) -> None:
            if lines:
                file.write((safe_text.lines("\n".join(lines)) + "\n").encode())
                seen(lines)

        # From the root: no project, workspace or .python-version is found there.
        result = processes.run(
            argv, deadline=deadline, env=env, cwd=Path("/"), tick=tick, watch=watch, both=True
        )
        file.truncate(start)  # the last lines may be missing there, and now they are in order
        whole = (result.stdout + result.stderr).decode("utf-8", "replace")
        file.write(safe_text.lines(whole).encode())
    return result
