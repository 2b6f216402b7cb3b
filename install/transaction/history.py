"""Which versions of a root can be used, and which of them was in use last."""

from __future__ import annotations

from . import record
from .journal import Journal
from .layout import Root
from .recover import unfinished


def usable(root: Root, journal: Journal) -> list[str]:
    """Every verified version that was finished: ``current`` first, then by when it was last in use."""
    begun = set(unfinished(root, journal))
    noted = {version.id: record.read(version) for version in root.versions()}
    verified = {name: one.verified_at for name, one in noted.items() if one and name not in begun}
    entries = enumerate(journal.entries())
    used = {entry.version: number for number, entry in entries if entry.step == "swapped"}
    current = root.current_id()
    return sorted(
        verified,
        key=lambda name: (name == current, used.get(name, -1), verified[name]),
        reverse=True,
    )
