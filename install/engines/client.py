"""Runs an engine's command line, with a deadline and without anything of ours in its words."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...exit_codes import CouldNotLook
from .. import processes
from ..engine import EngineImage

ANSWERS = 60.0  # seconds for a question
WORKS = 1800.0  # seconds for a removal: millions of small files on a slow disk
FETCHES = 24 * 3600.0  # seconds for a pull: a slow line carries 20 GB in that time

# Engines speak to envcheck on the loopback interface alone.
_NOT_THEIRS = (
    "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy",
)  # fmt: skip


def surroundings(**changes: str) -> dict[str, str]:
    """The engine's environment: the user's own, for it finds its storage and its server there."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_THEIRS}
    return {**kept, "LC_ALL": "C.UTF-8", "NO_COLOR": "1", **changes}


def ask(
    program: str,
    arguments: Sequence[str | Path],
    *,
    deadline: float = ANSWERS,
    env: Mapping[str, str] | None = None,
    look: Callable[[], None] | None = None,
) -> Any:
    """One run of the engine: a ``process.Result``.

    When envcheck dies, it is told to end (SIGTERM), so that it leaves no lock on its storage. look: called
    between looks; what it raises ends the engine.
    """

    def tick(_lines: list[str]) -> None:
        if look is not None:
            look()

    return processes.run(
        [program, *arguments],
        deadline=deadline,
        env=surroundings() if env is None else env,
        cwd=Path("/"),  # the user's may be gone, and is not for what an engine leaves behind
        tick=tick,
        orphaned=signal.SIGTERM,
    )


def words(result: Any) -> str:
    """What it said, stderr first."""
    text: bytes = result.stderr.strip() or result.stdout.strip()
    return text.decode("utf-8", "replace") or result.describe()


def silent(held: EngineImage, result: Any) -> CouldNotLook:
    """For an engine that gave no answer to a question."""
    from .troubles import told

    if result.outcome != "exited":
        return CouldNotLook(f"{held.engine} ({held.program}) {result.describe()}.")
    sentence, hint = told(held.engine, words(result))
    return CouldNotLook(f"{held.engine} ({held.program}) does not answer: {sentence}.", hint)
