"""The remedies whose commands are refused, kept so that no test passes over one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from envcheck.findings import commands, remedy

found: list[str] = []


def _recorded(listed: Sequence[str], text: str) -> str:
    reason = commands.refusal(listed, text)
    if reason:
        found.append(reason)
    return reason


remedy.refusal = _recorded


@contextmanager
def expected() -> Iterator[None]:
    """Where a test is about a remedy that is refused."""
    before = len(found)
    yield
    assert len(found) > before, "nothing was refused"
    del found[before:]
