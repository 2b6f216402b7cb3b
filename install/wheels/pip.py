"""pip, where uv does not run or is not wanted: the lock's own, started from its wheel.

So pip's age is the lock's, not the interpreter's (3.6 brings 18.1, too old for manylinux2014), and the
environment gets nothing that is not locked, as ensurepip's setuptools would be.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...exit_codes import Cannot, PutBack
from .. import processes, pylock
from ..lockfile import LockedPackage, Lockfile
from . import arriving, child_env, logs
from .uv import DEADLINE

if TYPE_CHECKING:
    from ..store.fetch import Fetcher

_OPTIONS = (
    "--disable-pip-version-check",
    "--no-input",
    "--no-cache-dir",
    "--no-warn-script-location",
    "--no-deps",
    "--require-hashes",
)

_WRONG_BYTES = "DO NOT MATCH THE HASHES"


def described(lock: Lockfile) -> str:
    """ "pip 21.3.1": the lock's."""
    own = locked(lock)
    return f"pip {own.version}" if own else "pip"


def locked(lock: Lockfile) -> LockedPackage | None:
    return next((package for package in lock.packages if package.name == "pip"), None)


def sync(
    directory: Path,
    lock: Lockfile,
    fetcher: Fetcher,
    packages: Sequence[LockedPackage],
    *,
    beat: Callable[[], None] | None = None,
) -> None:
    """Install ``packages`` of the lock by hash into an environment that is still empty.

    Raises Cannot where the lock has no pip, PutBack with pip's own words.
    """
    own = locked(lock)
    if own is None:
        raise Cannot(
            "without uv, packages are installed by the pip of the lock, and this lock has none",
            hint="install uv (python3 -m pip install uv), which needs no pip",
        )
    folder = logs.work(directory) / "pip"
    try:
        files = [own.file, *(package.file for package in packages)]
        shelf = arriving.shelf(folder / "shelf", files, fetcher, beat)
        listed = folder / "requirements.txt"
        listed.write_text(pylock.for_pip(lock, packages), encoding="utf-8")
        python: Path | str = directory / "bin" / "python"
        started = shelf / own.file.name / "pip"
        with logs.Log(directory, "install.log") as kept:
            argv = [python, "-I", started, "install", "--only-binary", ":all:", "-r", listed]
            result = run(argv, shelf, {}, kept, beat)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not result.ok:
        raise PutBack(
            f"pip could not install {len(lock.packages)} packages into {directory}: {words(result)}",
            hint=f"the whole log is in {kept.path}",
        )


def run(
    argv: Sequence[str | Path],
    shelf: Path,
    env: Mapping[str, str],
    log: logs.Log,
    beat: Callable[[], None] | None = None,
) -> Any:
    """One run of pip with the files on the shelf, by hash, and no index: a ``process.Result``."""

    def look(lines: list[str]) -> None:
        log.add(lines)
        if beat is not None:
            beat()

    whole = [*argv, "--no-index", "--find-links", shelf, *_OPTIONS]
    env = {**child_env.plain(), **env}
    result = processes.run(whole, deadline=DEADLINE, env=env, cwd=Path("/"), tick=look)
    log.close(result.stdout + result.stderr)
    return result


def words(result: Any) -> str:
    """pip's error: its ERROR lines, else its last line."""
    if result.outcome != "exited" or result.code < 0:
        return f"it {result.describe()}"
    text = result.stderr.decode("utf-8", "replace")
    if wrong := _wrong_bytes(text):
        return wrong
    lines = text.strip().splitlines()
    errors = [line.removeprefix("ERROR: ").strip() for line in lines if line.startswith("ERROR: ")]
    return " ".join(errors or lines[-1:]) or f"it {result.describe()}"


def _wrong_bytes(text: str) -> str:
    """What pip says of a file with another hash, three lines of it as one sentence; "" where it does not."""
    _, found, rest = text.partition(_WRONG_BYTES)
    lines = [line.split() for line in rest.splitlines()[1:]] if found else []
    for package, expected, got in zip(lines, lines[1:], lines[2:], strict=False):
        if package and expected[:2] == ["Expected", "sha256"] and got[:1] == ["Got"]:
            came, locked = " ".join(got[1:]), " ".join(expected[2:])
            return (
                f"{package[0].rstrip(':')} came with the sha256 {came}, and the lock has {locked}"
            )
    return ""
