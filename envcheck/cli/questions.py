"""The question before something is changed."""

from __future__ import annotations

import sys

from ..exit_codes import UsageError
from . import messages

_WORDS = {"": False, "y": True, "yes": True, "n": False, "no": False}


def agreed(question: str) -> bool:
    """Whether the user says yes. Raises UsageError where there is no terminal to ask on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("there is no terminal to ask on", hint="--yes does it without asking")
    return answered(question, default=False)


def answered(question: str, *, default: bool) -> bool:
    """Ask on the terminal until the answer is one. The end of the input (Ctrl-D) is a no."""
    while True:
        messages.show(question)
        try:
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            messages.show("\n")
            raise
        if not answer:
            messages.show("\n")
            return False
        word = answer.strip().lower()
        if word in _WORDS:
            return _WORDS[word] if word else default
        messages.show("Please answer y or n.\n")
