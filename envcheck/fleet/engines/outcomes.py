"""What became of a machine, from the output of ssh, sudo, Ansible and its Python. Pure.

The same trouble has the same words on every machine, so that machines can be grouped by it; and words of
others are passed on only where none of these is known.
"""

from __future__ import annotations

import re

import msgspec

from ... import data, safe_text
from ..folder import Outcome

_LONGEST = 200  # characters of foreign words
_READ = 10_000  # characters in which the last words are looked for

_SENT_NOTHING = re.compile(
    r"Data could not be sent to remote host [^:]{0,300}:\W{0,9}", re.IGNORECASE
)
_DENIED = re.compile(r"permission denied \(([a-z,-]{1,100})\)")
_BEGINNINGS = (
    "Task failed:",
    "Failed to connect to the host via ssh:",
    "Unexpected failure during module execution:",
)


class _KnownError(msgspec.Struct, frozen=True):
    """phrase: of the output, in lower case. outcome, reason: what became of the machine, in our words."""

    phrase: str
    outcome: Outcome
    reason: str


def of_words(words: str, outcome: Outcome) -> tuple[Outcome, str]:
    """What became of a machine that Ansible gave up with these words; ``outcome`` where they are unknown."""
    ending = last(words)
    if _SENT_NOTHING.fullmatch(ending):  # Ansible's words, after which ssh says nothing
        ending = "the connection broke"
    return _known(words) or (outcome, ending or "Ansible does not say why")


def of_garbage(words: str, code: int | None) -> tuple[Outcome, str]:
    """What became of a machine that answered these words, and not what it was asked."""
    known, ending = _known(words), last(words)
    if known is None and code:
        return "failed", ending or f"python3 there exited with status {code}"
    wrote = f'said no Snapshot, but "{ending}"' if ending else "printed nothing"
    return known or ("unreadable", f"python3 there {wrote}")


def _known(words: str) -> tuple[Outcome, str] | None:
    lower = words[-_READ:].lower()
    for known in data.rows("connection_errors", _KnownError):
        if known.phrase in lower:
            return known.outcome, known.reason
    denied = _DENIED.search(lower)
    return ("unreachable", f"permission denied ({denied.group(1)})") if denied else None


def last(words: str) -> str:
    """The last line of others' output that has words in it."""
    lines = [line.strip() for line in words[-_READ:].splitlines() if any(c.isalpha() for c in line)]
    ending = lines[-1] if lines else ""
    for beginning in _BEGINNINGS:
        ending = ending.removeprefix(beginning).strip()
    text = safe_text.one_line(ending)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
