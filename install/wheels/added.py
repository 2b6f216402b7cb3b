"""What a user has added to the version in use: listed before another one takes its place, or taken over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..drift import some
from ..fit.models import Choice
from ..lockfile import LockedPackage, Lockfile
from ..transaction import existing
from ..transaction.layout import Root
from . import resolve

if TYPE_CHECKING:
    from .indexes import Indexes


def look(
    root: Root, lock: Lockfile, choice: Choice, indexes: Indexes | None, *, keep: bool
) -> tuple[list[LockedPackage], list[str]]:
    """The packages to install beside the lock's, and what becomes of all of them, in sentences.

    indexes: None without a network. keep: take over what fits.
    """
    current = root.current_id()
    version = root.version(current) if current else None
    if version is None or version.is_container or not version.is_directory:
        return [], []
    from .. import drift

    found = drift.of(version.directory)
    locked = {package.name for package in lock.packages}
    mine = {name: said for name, said in found.added.items() if name not in locked}
    notes = []
    if found.changed:
        told = (f"{n} {now} (locked: {was})" for n, (was, now) in found.changed.items())
        notes.append(f"changed in {current}, and as locked in the new version: {some(told)}")
    if found.removed:
        notes.append(
            f"removed from {current}, and back in the new version: {_listed(found.removed)}"
        )
    if not mine:
        return [], notes
    if not keep or indexes is None:
        why = ": no network is used" if keep else "; --keep-added installs them there, too"
        notes.append(f"added to {current}, and not in the new version: {_listed(mine)}{why}")
        return [], notes
    wanted = {n: mine[n] for n in found.wanted if n in mine and n not in found.elsewhere}
    packages, unfit = resolve.beside(lock, wanted, choice, indexes)
    for name in mine.keys() & found.elsewhere.keys():
        unfit[name] = f"it is from {found.elsewhere[name]}, and not from an index"
    if packages:
        kept = _listed({package.name: package.version for package in packages})
        notes.append(f"added to {current}, and in the new version, too: {kept}")
    notes += [
        f"{name} {mine[name]}, added to {current}, is not in the new version: {why}"
        for name, why in unfit.items()
    ]
    return packages, notes


def damage(root: Root, digest: str) -> list[str]:
    """Why a version by the same lock does not do: a sentence for the plan, or none."""
    current = root.current_id()
    if current is None or digest[:8] not in current or not root.version(current).is_directory:
        return []
    found = existing.condition(root.version(current))
    if found.usable:
        return []
    return [f"{current} is damaged, and a new version takes its place: {'; '.join(found.changes)}"]


def _listed(versions: Mapping[str, str]) -> str:
    return some(f"{name} {version}" for name, version in versions.items())
