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


def environment(**changes: str) -> dict[str, str]:
    """The engine's environment: the user's own, for it finds its storage, its server and its proxy there."""
    return {**os.environ, "LC_ALL": "C.UTF-8", "NO_COLOR": "1", **changes}


def ask(
    program: str,
    arguments: Sequence[str | Path],
    *,
    deadline: float = ANSWERS,
    env: Mapping[str, str] | None = None,
    tick: Callable[[list[str]], None] | None = None,
) -> Any:
    """One run of the engine: a ``process.Result``.

    When envcheck dies, it is told to end (SIGTERM), so that it leaves no lock on its storage. tick: called
    between looks with the lines that it printed since; what it raises ends the engine.
    """
    return processes.run(
        [program, *arguments],
        deadline=deadline,
        env=environment() if env is None else env,
        cwd=Path("/"),  # the user's may be gone, and is not for what an engine leaves behind
        tick=tick,
        both=True,
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
