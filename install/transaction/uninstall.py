"""Removes a version, or a whole environment; never what is not envcheck's."""

from __future__ import annotations

from typing import NamedTuple

from ...exit_codes import Cannot, NotPutBack, PutBack, UsageError
from ...findings.shell import word
from . import current, engine_images, file_list, guard, lock, recovery, removal
from .interfaces import Tell
from .journal import Journal
from .layout import Root, Version


class Uninstalled(NamedTuple):
    directory: str
    versions: list[str]  # that were removed
    whole: bool  # the environment is gone, and not a version of it alone
    freed: int  # bytes; what uv's cache or another version still has, and images, are not counted
    foreign: list[str]  # paths in the directory that are not envcheck's
    images: list[str]  # that engines removed: "…@sha256:… in podman"


def check(root: Root, version_id: str = "") -> list[Version]:
    """The versions that would go: the one named, else all.

    Raises UsageError for one that must stay, and as ``guard.check``; Cannot for one in which a command runs.
    """
    guard.check(root)
    there = root.versions()
    chosen = [version for version in there if version_id in ("", version.id)]
    if version_id and not chosen:
        names = ", ".join(version.id for version in there)
        raise UsageError(
            f"{version_id}: there is no such version" + (f"; there are {names}" if names else "")
        )
    if version_id and version_id == root.current_id():
        raise UsageError(
            f"{version_id}: this version is in use",
            hint="run envcheck rollback first; without --version all versions are removed",
        )
    for version in chosen:
        if lock.is_busy(version):
            raise Cannot(
                f"{version.directory}: a command that envcheck run started is still running in it",
                hint=f"stop it first; fuser -v {word(str(version.files))} shows its processes",
            )
    return chosen


def bytes_of(versions: list[Version]) -> int:
    """What their directories take; their images are not counted."""
    return file_list.usage([version.directory for version in versions]).total


def uninstall(
    root: Root,
    version_id: str = "",
    *,
    wait: float | None = None,
    tell: Tell = lambda sentence: None,
) -> Uninstalled:
    """Remove one version, or the whole environment with its marker; what is not of the layout stays.

    Raises UsageError and Cannot as ``check``, PutBack where an engine kept the first image and nothing has
    changed, NotPutBack where something could not be removed.
    """
    journal = Journal(root.journal)
    with lock.locked(root, "envcheck uninstall", wait=wait, tell=tell):
        recovery.recover(root, journal, tell)
        chosen = check(root, version_id)
        used = file_list.usage([version.directory for version in chosen])
        try:
            images = _release(root, chosen)
            if not version_id:
                current.clear(root)  # first: from here on nothing looks installed
            for version in chosen:
                tell(f"removing {version.directory}")
                removal.take_away(root, version)
                journal.append(version.id, "removed")
        except (NotPutBack, OSError) as error:
            why = recovery.cause(error, root) if isinstance(error, OSError) else str(error)
            raise NotPutBack(
                f"{root.path}: not all of it could be removed: {why}",
                hint=getattr(error, "hint", "") or "repair that, then run again",
            ) from None
        foreign = [] if version_id else recovery.dissolve(root)
    return Uninstalled(
        directory=str(root.path),
        versions=[version.id for version in chosen],
        whole=not version_id,
        freed=used.total - used.shared,
        foreign=[str(path) for path in foreign],
        images=images,
    )


def _release(root: Root, chosen: list[Version]) -> list[str]:
    """Have engines remove images: the names of those. Of the version in use last: a container may run that
    envcheck did not start. Raises PutBack where nothing was removed, NotPutBack."""
    in_use = root.current_id()
    removed: list[str] = []
    first = True
    for version in sorted(chosen, key=lambda one: one.id == in_use):
        try:
            removed.append(engine_images.release(version))
        except NotPutBack as error:
            if not first:
                raise
            raise PutBack(f"{root.path}: nothing was removed: {error}", hint=error.hint) from None
        first = first and not version.is_container
    return [*filter(None, removed)]
