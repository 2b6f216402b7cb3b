"""Words for people on standard error, whose loss costs nothing else (`envcheck install 2>&1 | head`).

The one writer of standard error beside the lines that show progress: what others wrote and our words quote
is made safe here.
"""

from __future__ import annotations

import os
import sys

from .. import safe_text
from .commands import in_place


def say(sentence: str) -> None:
    """A line of progress, or an error."""
    show(f"envcheck: {safe_text.one_line(in_place(sentence))}\n")


def hint(text: str) -> None:
    """What to do about an error. Further lines are indented, so that none looks like one of ours."""
    first, *rest = in_place(text).split("\n")
    show(f"hint: {safe_text.one_line(first)}\n")
    for line in rest:
        show(f"    {safe_text.one_line(line)}\n")


def trace() -> None:
    """The traceback of the exception that is being handled."""
    import traceback  # here: it costs `--help` a tenth of its time

    show(safe_text.lines(traceback.format_exc()))


def show(text: str) -> None:
    """Write it at once, as far as somebody is there to read it."""
    try:
        sys.stderr.write(safe_text.styled(text))
        sys.stderr.flush()
    except (OSError, ValueError):
        _abandon()


def _abandon() -> None:
    """Keep the next word, and the interpreter at its end, from failing on a stream that is gone."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    except (OSError, ValueError):
        return
