"""Makes room: old versions, downloads, and what uv has unpacked and no kept version needs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ..exit_codes import Cannot, NotPutBack, UsageError
from . import leftovers, places
from .transaction import (
    engine_images,
    existing,
    file_list,
    guard,
    lock,
    record,
    recovery,
    removal,
    roots,
    uninstall,
)
from .transaction.journal import Journal, unfinished
from .transaction.layout import Root, Version
from .wheels import uv_cache

KEEP = 1  # versions beside the one in use, so that a rollback has somewhere to go


class Removed(msgspec.Struct, frozen=True):
    environment: str
    version: str
    bytes_total: int


class Kept(Removed, frozen=True):
    why: str  # "in use"


class Pruned(msgspec.Struct, kw_only=True):
    """What was removed and kept, or would be (``dry_run``). Sizes are bytes on the disk, without engines'
    images: what these share with others, their storage alone knows."""

    dry_run: bool
    kept: list[Kept] = []
    removed: list[Removed] = []
    files: int = 0  # downloads
    files_bytes: int = 0
    leftovers: list[str] = []  # files and directories that killed runs left
    images: list[str] = []  # that engines let go of: of removed versions
    packages: list[str] = []  # that uv's cache lets go of
    freed: int = 0  # of the disk, by all of it; what is linked several times counts once
    notes: list[str] = []  # what was left alone, and why


def prune(
    chosen: list[Root] | None = None,
    *,
    keep: int = KEEP,
    dry_run: bool = False,
    tell: Callable[[str], None] = lambda sentence: None,
) -> Pruned:
    """Remove all but the version in use and ``keep`` before it, from ``chosen`` roots (all, where None);
    then downloads and uv's unpacked wheels that no version of any root needs.

    An environment in which another envcheck is at work is left alone, and so are then the files. From the
    main thread. Raises NotPutBack where something could not be removed, UsageError for a chosen root that
    another user may have prepared; others of that kind are left alone.
    """
    places.check_home()
    for root in chosen or []:
        guard.check(root)
    found = {root.path: root for root in [*roots.known(), *(chosen or [])]}
    every = [found[path] for path in sorted(found)]
    wanted = {root.path for root in (every if chosen is None else chosen)}
    with ExitStack() as locks:
        work = _Work(Pruned(dry_run=dry_run), tell)
        before = 0 if dry_run else _bytes(every)
        for root in every:
            work.choose(root, keep if root.path in wanted else None, locks)
        freed = work.expected() if dry_run else 0
        stay = engine_images.brought(work.staying)
        going = engine_images.brought(version for _, version in work.going)
        work.done.images = [image for image in going if image not in stay]
        if not dry_run:
            work.remove_versions()
        if not work.busy:
            freed += work.remove_files()
            work.clean_cache()
        freed += work.done.files_bytes if dry_run else before - _bytes(every)
    work.done.freed = max(0, freed)
    return work.done


class _Work:
    """What is decided, while one root after the other is looked at."""

    def __init__(self, done: Pruned, tell: Callable[[str], None]) -> None:
        self.done = done
        self.going: list[tuple[Root, Version]] = []
        self.staying: list[Version] = []
        self.busy = False  # another envcheck is at work somewhere, and may need any file
        self._tell = tell

    def choose(self, root: Root, keep: int | None, locks: ExitStack) -> None:
        """Decide on a root's versions; its lock is held from here on. keep: None: all of them."""
        journal = Journal(root.journal)
        try:
            locks.enter_context(lock.locked(root, "envcheck prune", wait=0))
        except (UsageError, Cannot) as reason:  # another user's, a newer envcheck's, or at work
            self.busy = self.busy or isinstance(reason, Cannot)
            also = ", and so are downloads" if isinstance(reason, Cannot) else ""
            self.done.notes.append(f"{reason}: it is kept{also}")
            self.staying += root.versions()
            return
        begun = unfinished(root, journal)
        usable = existing.usable(root, journal)
        beside = [name for name in usable if name != root.current_id()]
        for version in root.versions():
            complete = version.id not in begun
            reasons = {
                "in use": version.id == root.current_id(),
                "of another environment": complete and keep is None,
                "for envcheck rollback": version.id in beside[: keep or 0],
                "a command that envcheck run started is running in it": lock.is_busy(version),
                "not known: it has no record": complete and version.id not in usable,
            }
            why = next((reason for reason, applies in reasons.items() if applies), "")
            place, size = (root.name, version.id), uninstall.bytes_of([version])
            if why:
                self.staying.append(version)
                self.done.kept.append(Kept(*place, size, why))
            else:
                self.going.append((root, version))
                self.done.removed.append(Removed(*place, size))
        if not self.done.dry_run:
            recovery.recover(root, journal, self._tell)

    def expected(self) -> int:
        """Bytes that removing versions would free: all that no version that stays is linked to."""
        staying = file_list.blocks([version.directory for version in self.staying]).keys()
        going = file_list.blocks([version.directory for _, version in self.going])
        return sum(size for key, (size, _, _) in going.items() if key not in staying)

    def remove_versions(self) -> None:
        for root, version in self.going:
            if not version.is_directory:
                continue  # it was unfinished
            self._tell(f"removing {version.directory}")
            try:
                removal.discard(root, version)
                Journal(root.journal).append(version.id, "removed", why="prune")
            except (OSError, NotPutBack) as error:
                raise NotPutBack(
                    f"{version.directory}: not all of it could be removed: {error}",
                    hint=getattr(error, "hint", "") or "remove it yourself, and try again",
                ) from None

    def remove_files(self) -> int:
        """Downloads, pip's cache, and leftovers of killed runs: the bytes of what lay outside the cache."""
        done, elsewhere = self.done, 0
        for folder in (places.downloads(), places.cache() / "pip"):
            done.files += sum(len(names) for _, _, names in os.walk(folder))
            done.files_bytes += self._remove(folder)
        for path in leftovers.find():
            elsewhere += self._remove(path)
            done.leftovers.append(str(path))
        return elsewhere

    def _remove(self, path: Path) -> int:
        """Bytes that it takes. What cannot be removed stays."""
        taken = file_list.usage([path]).total
        if not self.done.dry_run:
            shutil.rmtree(path, ignore_errors=True)
        return taken

    def clean_cache(self) -> None:
        """Have uv let go of what it has unpacked."""
        noted = filter(None, map(record.read, self.staying))
        self.done.packages = uv_cache.superfluous(
            pair for one in noted for part in (one.versions, one.building) for pair in part.items()
        )
        if self.done.dry_run:
            return
        if self.done.packages:
            self._tell("uv cleans its cache")
        if why := uv_cache.clean(self.done.packages):
            self.done.notes.append(f"{why}: unpacked wheels were kept")


def _bytes(every: list[Root]) -> int:
    """What environments and the cache take together."""
    directories = [*(root.path for root in every), places.cache()]
    return sum(size for size, _, _ in file_list.blocks(directories).values())
