"""Runs an engine's command line, with a deadline and without anything of ours in its words."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...exit_codes import CouldNotLook
from .. import processes
from .troubles import told

ANSWERS = 60.0  # seconds for a question
WORKS = 1800.0  # seconds for a removal: millions of small files on a slow disk
FETCHES = 24 * 3600.0  # seconds for a pull: a slow line carries 20 GB in that time


def ask(
    program: str,
    arguments: Sequence[str | Path],
    *,
    deadline: float = ANSWERS,
    variables: Mapping[str, str] | None = None,
    tick: Callable[[list[str]], None] | None = None,
) -> Any:
    """One run of the engine: a ``process.Result``.

    When envcheck dies, it is told to end (SIGTERM), so that it leaves no lock on its storage. variables:
    beside the user's own, in which it finds its storage, its server and its proxy. tick: called between looks
    with the lines that it printed since; what it raises ends the engine.
    """
    return processes.run(
        [program, *arguments],
        deadline=deadline,
        env={**os.environ, "LC_ALL": "C.UTF-8", "NO_COLOR": "1", **(variables or {})},
        cwd=Path("/"),  # the user's may be gone, and is not for what an engine leaves behind
        tick=tick,
        both=True,
        orphaned=signal.SIGTERM,
    )


def words(result: Any) -> str:
    """What it said, stderr first."""
    text: bytes = result.stderr.strip() or result.stdout.strip()
    return text.decode("utf-8", "replace") or result.describe()


def no_answer(engine: str, program: str, result: Any) -> CouldNotLook:
    """For an engine that gave no answer to a question."""
    if result.outcome != "exited":
        return CouldNotLook(f"{engine} ({program}) {result.describe()}.")
    said, hint = told(engine, words(result))
    return CouldNotLook(f"{engine} ({program}) does not answer: {said}.", hint)
