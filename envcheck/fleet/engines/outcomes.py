"""What became of a machine, from the output of ssh, sudo, Ansible and its Python. Pure.

The same trouble has the same words on every machine, so that machines can be grouped by it; and words of
others are passed on only where none of these is known.
"""

from __future__ import annotations

import re

import msgspec

from ... import data, safe_text
from ..folder import Outcome
from .relay import Relayed

_LONGEST = 200  # characters of foreign words
_READ = 10_000  # characters in which the last words are looked for

_SENT_NOTHING = re.compile(
    r"Data could not be sent to remote host [^:]{0,300}:\W{0,9}", re.IGNORECASE
)
_DENIED = re.compile(r"permission denied \(([a-z,-]{1,100})\)")
_TROUBLES: dict[str, tuple[Outcome, str]] = {
    "flooded": ("unreadable", "the answer is longer than a Snapshot may be"),
    "none": ("failed", "there is no python3"),
}
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
    last = _last(words)
    if _SENT_NOTHING.fullmatch(last):  # Ansible's words, after which ssh says nothing
        last = "the connection broke"
    return _known(words) or (outcome, last or "Ansible does not say why")


def of_relayed(
    relayed: Relayed, deadline: float, errors: str = "", code: int | None = None
) -> tuple[Outcome, str] | None:
    """What became of a machine whose answer is no Snapshot; None where it may be one. errors, code: of the
    connection."""
    if relayed.outcome == "exited" and relayed.code == 0:
        output = relayed.output[-_READ:].decode("utf-8", "replace")
        return None if relayed.output.startswith(b"{") else _of_garbage(output, 0)
    if relayed.outcome == "timed-out":
        return "timed-out", f"no answer within {deadline:g} s"
    if relayed.outcome in _TROUBLES:
        return _TROUBLES[relayed.outcome]
    if relayed.outcome == "exited":
        words = _last(relayed.words).removeprefix("envcheck-collector: ")
        return "failed", words or f"the collector exited with status {relayed.code}"
    if relayed.outcome == "damaged":
        return "unreadable", relayed.words
    return _of_garbage(f"{relayed.words}\n{errors}", code)


def _of_garbage(words: str, code: int | None) -> tuple[Outcome, str]:
    """What became of a machine that answered these words, and not what it was asked."""
    found, last = _known(words), _last(words)
    if found is None and code:
        return "failed", last or f"python3 there exited with status {code}"
    said = f'said no Snapshot, but "{last}"' if last else "printed nothing"
    return found or ("unreadable", f"python3 there {said}")


def _known(words: str) -> tuple[Outcome, str] | None:
    lower = words[-_READ:].lower()
    for known in data.rows("connection_errors", _KnownError):
        if known.phrase in lower:
            return known.outcome, known.reason
    denied = _DENIED.search(lower)
    return ("unreachable", f"permission denied ({denied.group(1)})") if denied else None


def _last(words: str) -> str:
    """The last line of others' output that has words in it."""
    lines = [line.strip() for line in words[-_READ:].splitlines() if any(c.isalpha() for c in line)]
    last = lines[-1] if lines else ""
    for beginning in _BEGINNINGS:
        last = last.removeprefix(beginning).strip()
    text = safe_text.one_line(last)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
