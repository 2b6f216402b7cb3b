"""Makes room: old versions, and files that no kept version's lock names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import msgspec

from ...exit_codes import Cannot, NotPutBack, UsageError
from .. import durable, places
from ..store import leftovers
from ..store.store import Store
from . import engine_images, existing, file_list, guard, lock, record, recovery, removal, roots
from .engine_images import NO_ENGINES, ImageStore
from .interfaces import RemovalError
from .journal import Journal, unfinished
from .layout import Root, Version
from .lock import RootLock

KEEP = 1  # versions beside the one in use, so that a rollback has somewhere to go

_HASH = re.compile(r"\b[0-9a-f]{64}\b")


class PackageCache(Protocol):
    """uv's cache of unpacked wheels."""

    def superfluous(self, kept: Iterable[tuple[str, str]]) -> list[str]:
        """Names of which it holds other versions than ``kept`` ones, (name, version) each."""

    def clean(self, names: list[str]) -> str:
        """Let go of these, and of what nothing refers to any more. Gives "", or why it could not."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    environment: str
    version: str
    bytes_total: int
    why: str  # "in use"


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    environment: str
    version: str
    bytes_total: int


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed and kept, or would be (``dry_run``). Sizes are bytes on the disk."""

    dry_run: bool
    kept: list[Kept]
    removed: list[Removed]
    files: int  # of the store
    files_bytes: int
    leftovers: list[str]  # files and directories that killed runs left
    packages: list[str]  # that uv's cache lets go of
    freed: int  # of the disk, by all of it; what is linked several times counts once
    notes: list[str]  # what was left alone, and why


def prune(
    chosen: list[Root] | None = None,
    *,
    keep: int = KEEP,
    dry_run: bool = False,
    images: ImageStore = NO_ENGINES,
    cache: PackageCache | None = None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> Pruned:
    """Remove all but the version in use and ``keep`` before it, from ``chosen`` roots (all, where None).

    Then the store's files and uv's unpacked wheels that no version of any root needs. An environment in
    which another envcheck is at work is left alone, and so are then the files. From the main thread.
    Raises NotPutBack where something could not be removed, UsageError for a chosen root that another user
    may have prepared; others of that kind are left alone.
    """
    for root in chosen or []:
        guard.check(root)
    with ExitStack() as locks:
        work = _Work(keep, dry_run, images, tell)
        every = _every(chosen or [])
        before = 0 if dry_run else _bytes(every)
        wanted = {root.path for root in (every if chosen is None else chosen)}
        for root in every:
            work.take(root, root.path in wanted, locks)
        image_bytes = work.image_bytes()
        work.remove_versions()
        work.remove_files()
        if cache is not None:
            work.clean(cache)
        freed = image_bytes + (work.expected() if dry_run else before - _bytes(every))
        freed += 0 if dry_run else work.leftover_bytes
    return Pruned(
        dry_run=dry_run,
        kept=work.kept,
        removed=work.removed,
        files=work.files,
        files_bytes=work.files_bytes,
        leftovers=work.leftovers,
        packages=work.packages,
        freed=max(0, freed),
        notes=work.notes,
    )


class _Work:
    """What is decided, while one root after the other is looked at."""

    def __init__(
        self, keep: int, dry_run: bool, images: ImageStore, tell: Callable[[str], None]
    ) -> None:
        self._keep = keep
        self._dry_run = dry_run
        self._images = images
        self._tell = tell
        self._going: list[tuple[Root, Version]] = []
        self._staying: list[Version] = []
        self._busy = False
        self.kept: list[Kept] = []
        self.removed: list[Removed] = []
        self.files = self.files_bytes = self.leftover_bytes = 0
        self.leftovers: list[str] = []
        self.packages: list[str] = []
        self.notes: list[str] = []

    def take(self, root: Root, wanted: bool, locks: ExitStack) -> None:
        """Decide on a root's versions; its lock is held from here on."""
        journal = Journal(root.journal)
        try:
            locks.enter_context(RootLock(root, "envcheck prune", wait=0))
        except (UsageError, Cannot) as reason:  # another user's, a newer envcheck's, or at work
            self._busy = self._busy or isinstance(reason, Cannot)
            also = ", and so are downloads" if isinstance(reason, Cannot) else ""
            self.notes.append(f"{reason}: it is kept{also}")
            self._staying += root.versions()
            return
        for version in map(root.version, unfinished(root, journal)):
            if version.is_directory:
                self._let_go(root, version)
        if not self._dry_run:
            recovery.recover(root, journal, self._images, self._tell)
        current = root.current_id()
        usable = existing.usable(root, journal)
        beside = [version for version in usable if version != current]
        going = {version.id for its_root, version in self._going if its_root is root}
        for version in root.versions():
            if version.id in going:
                continue
            why = _why(version.id, current, beside, self._keep, wanted)
            if not why and lock.is_busy(version):
                why = "a command that envcheck run started is running in it"
            if version.id in usable and not why:
                self._let_go(root, version)
                continue
            self._staying.append(version)
            why = why or "not known: it has no record"
            self.kept.append(
                Kept(
                    environment=root.name,
                    version=version.id,
                    bytes_total=_bytes_of(version),
                    why=why,
                )
            )

    def _let_go(self, root: Root, version: Version) -> None:
        size = _bytes_of(version)
        self._going.append((root, version))
        self.removed.append(Removed(environment=root.name, version=version.id, bytes_total=size))

    def image_bytes(self) -> int:
        """What engines let go of, before they do."""
        return engine_images.bytes_freed([version for _, version in self._going])

    def remove_versions(self) -> None:
        for root, version in self._going if not self._dry_run else ():
            if not version.is_directory:
                continue  # it was unfinished
            self._tell(f"removing {version.directory}")
            try:
                removal.discard(root, version, self._images)
                Journal(root.journal).append(version.id, "removed", why="prune")
            except (OSError, RemovalError) as error:
                raise NotPutBack(
                    f"{version.directory}: not all of it could be removed: {error}",
                    hint=getattr(error, "hint", "") or "remove it yourself, and try again",
                ) from None

    def remove_files(self) -> None:
        """The store's, that no lock of a version that stays names, and what killed runs left."""
        if self._busy:
            return
        locks = [_text(version.lock) for version in self._staying]
        hashes = {found for text in locks for found in _HASH.findall(text)}
        store = Store(places.store())
        for entry in list(store.entries()):
            if entry.sha256 not in hashes:
                self.files += 1
                self.files_bytes += entry.size if self._dry_run else store.remove(entry.sha256)
        for path in leftovers.find(store):
            size = leftovers.size(path) if self._dry_run else leftovers.remove(path)
            self.leftovers.append(str(path))
            if not path.is_relative_to(store.root):
                self.leftover_bytes += size

    def clean(self, cache: PackageCache) -> None:
        """Have uv let go of what it has unpacked."""
        if self._busy:
            return
        noted = filter(None, map(record.read, self._staying))
        self.packages = cache.superfluous(
            pair for one in noted for part in (one.versions, one.building) for pair in part.items()
        )
        if self._dry_run:
            return
        if self.packages:
            self._tell("uv cleans its cache")
        if why := cache.clean(self.packages):
            self.notes.append(f"{why}: unpacked wheels were kept")

    def expected(self) -> int:
        """Bytes that the real run would free: of what goes, all that no version that stays is linked to."""
        staying = file_list.blocks([version.directory for version in self._staying]).keys()
        going = file_list.blocks([version.directory for _, version in self._going])
        freed = sum(size for key, (size, _, _) in going.items() if key not in staying)
        return freed + self.files_bytes + self.leftover_bytes


def _every(chosen: list[Root]) -> list[Root]:
    """All that are known, and the chosen ones, as they were chosen."""
    found = {root.path: root for root in [*roots.known(), *chosen]}
    return [found[path] for path in sorted(found)]


def _why(version: str, current: str | None, beside: list[str], keep: int, wanted: bool) -> str:
    """Why a version stays; "" where it may go."""
    if version == current:
        return "in use"
    if not wanted:
        return "of another environment"
    if version in beside[:keep]:
        return "for envcheck rollback"
    return ""


def _bytes_of(version: Version) -> int:
    return file_list.usage([version.directory]).total + engine_images.bytes_held([version])


def _bytes(every: list[Root]) -> int:
    """What environments, the store and uv's cache take together."""
    directories = [*(root.path for root in every), places.store(), places.uv_cache()]
    return sum(size for size, _, _ in file_list.blocks(directories).values())


def _text(path: Path) -> str:
    try:
        return durable.read(path).decode("utf-8", "replace")
    except OSError:
        return ""
