"""Words for people on standard error, whose loss costs nothing else (`envcheck install 2>&1 | head`)."""

from __future__ import annotations

import os
import sys


def say(sentence: str) -> None:
    """A line of progress."""
    show(f"envcheck: {sentence}\n")


def show(text: str) -> None:
    """Write it at once, as far as somebody is there to read it."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        _abandon()


def _abandon() -> None:
    """Keep the next word, and the interpreter at its end, from failing on a stream that is gone."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    except (OSError, ValueError):
        return
