"""What an envcheck that was killed has left is put in order before anything else is done in a root."""

from __future__ import annotations

from collections.abc import Callable

from . import in_use, removal
from .journal import FINISHED, OVER, Journal, last_steps
from .layout import Root


def unfinished(root: Root, journal: Journal) -> list[str]:
    """Versions that were begun, and neither swapped in nor taken back. Reads only."""
    current = root.current_id()
    steps = last_steps(journal.entries())
    over = FINISHED | OVER
    return [name for name, step in steps.items() if step not in over and name != current]


def recover(root: Root, journal: Journal, tell: Callable[[str], None]) -> None:
    """Complete a swap that was not recorded, and take back what was not finished. Under the root's lock.

    A version that was begun is removed even where much of it is there: half of an environment cannot be
    told from a whole one without building it again, and that is cheap, for fetched files stay in the store.
    What ``current`` names is never touched. Raises OSError, removal.RemovalError.
    """
    root.next.unlink(missing_ok=True)
    for number in journal.foreign():
        tell(f"{root.journal}: line {number} was not written by this envcheck, and is ignored")
    _complete(root, journal)
    for name in unfinished(root, journal):
        version = root.version(name)
        if version.is_directory:
            tell(f"{version.directory}: removing what an interrupted installation left")
        removal.discard(root, version)
        journal.append(name, "undone", why="cut off")
    removal.empty(root)


def _complete(root: Root, journal: Journal) -> None:
    current = root.current_id()
    step = last_steps(journal.entries()).get(current or "")
    if current is None or step not in ("verified", "swapped"):
        return
    if step == "verified":
        journal.append(current, "swapped", why="found in use")
    in_use.complete(root, journal, current)
