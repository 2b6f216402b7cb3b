"""Runs an engine's command line with a deadline, and explains its errors.

What went wrong is shown in the engine's own words; envcheck adds what to do.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...data import rows
from ...exit_codes import CouldNotLook
from ...safe_text import one_line
from .. import processes

ANSWERS = 60.0  # seconds for a question
WORKS = 1800.0  # seconds for a removal: millions of small files on a slow disk
FETCHES = 24 * 3600.0  # seconds for a pull: 20 GB over a slow line

_READ = 4000  # characters of an engine's output, the last ones
_SHOWN = 1500  # of its last line, from the end: Go puts the cause there
_ERROR = re.compile(r"(?:error|fatal|docker)\b", re.IGNORECASE)


class EngineTrouble(msgspec.Struct, frozen=True):
    """A row of engine_troubles.csv: the first whose pattern is in the engine's words counts."""

    pattern: re.Pattern[str]
    hint: str


def ask(
    program: str,
    arguments: Sequence[str | Path],
    *,
    deadline: float = ANSWERS,
    variables: Mapping[str, str] | None = None,
    tick: Callable[[list[str]], None] | None = None,
) -> Any:
    """One run of the engine: a ``process.Result``.

    If envcheck dies, the engine gets SIGTERM, so that it leaves no lock on its storage. variables: beside
    the user's, which name its storage, server and proxy. tick: called regularly with the lines printed since;
    what it raises stops the engine.
    """
    return processes.run(
        [program, *arguments],
        deadline=deadline,
        env={**os.environ, "LC_ALL": "C.UTF-8", "NO_COLOR": "1", **(variables or {})},
        cwd=Path("/"),  # the user's may be gone, and is no place for what an engine leaves behind
        tick=tick,
        both=True,
        orphaned=signal.SIGTERM,
    )


def words(result: Any) -> str:
    """What the engine printed: stderr if there is any."""
    text: bytes = result.stderr.strip() or result.stdout.strip()
    return text.decode("utf-8", "replace") or result.describe()


def no_answer(engine: str, program: str, result: Any) -> CouldNotLook:
    """The error for an engine that did not answer a question."""
    if result.outcome != "exited":
        return CouldNotLook(f"{engine} ({program}) {result.describe()}.")
    reason, hint = explained(engine, words(result))
    return CouldNotLook(f"{engine} ({program}) does not answer: {reason}.", hint)


def explained(engine: str, text: str) -> tuple[str, str]:
    """(the engine's last error on one line, what to do or "")."""
    text = text[-_READ:]
    known = rows("engine_troubles", EngineTrouble)
    hints = (row.hint for row in known if row.pattern.search(text))
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no output"]
    place = max((n for n, line in enumerate(lines) if _ERROR.match(line)), default=-1)
    # podman lists below such a line what each format of an archive failed with
    last = " ".join(lines[place:]) if lines[place].endswith(":") else lines[place]
    last = re.sub(r"^(?:Error|FATAL|docker|Error response from daemon):\s*", "", last)
    shortened = f"…{last[-_SHOWN:]}" if len(last) > _SHOWN else last
    return one_line(shortened).strip().rstrip("."), next(hints, "").format(engine=engine)
