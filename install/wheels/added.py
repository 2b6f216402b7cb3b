"""What a user has added to the version in use: listed before another one takes its place, or taken over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .. import drift
from ..drift import some
from ..fit.models import Choice
from ..lockfile import LockedPackage, Lockfile
from ..transaction import existing
from ..transaction.layout import Root

if TYPE_CHECKING:
    from .indexes import Indexes


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """packages: that are installed beside the lock's. notes: what becomes of all of them, in sentences."""

    packages: list[LockedPackage] = []
    notes: list[str] = []


def look(
    root: Root, lock: Lockfile, choice: Choice, indexes: Indexes | None, *, keep: bool
) -> Added:
    """indexes: None without a network. keep: take over what fits."""
    current = root.current_id()
    version = root.version(current) if current else None
    if version is None or version.is_container or not version.is_directory:
        return Added()
    found = drift.of(version.directory)
    locked = {package.name for package in lock.packages}
    mine = {name: said for name, said in found.added.items() if name not in locked}
    notes = []
    if found.changed:
        told = (f"{n} {now} (locked: {was})" for n, (was, now) in found.changed.items())
        notes.append(f"changed in {current}, and as locked in the new version: {some(told)}")
    if found.removed:
        gone = (f"{name} {said}" for name, said in found.removed.items())
        notes.append(f"removed from {current}, and back in the new version: {some(gone)}")
    if not mine:
        return Added(notes=notes)
    if not keep:
        told = (f"{name} {said}" for name, said in mine.items())
        notes.append(
            f"added to {current}, and not in the new version: {some(told)};"
            " --keep-added installs them there, too"
        )
        return Added(notes=notes)
    if indexes is None:
        names = some(mine)
        notes.append(f"added to {current}, and not in the new version: {names}: no network is used")
        return Added(notes=notes)
    wanted = {n: mine[n] for n in found.wanted if n in mine and n not in found.elsewhere}
    packages, unfit = _resolved(lock, wanted, choice, indexes)
    for name in found.elsewhere:
        unfit[name] = f"it is from {found.elsewhere[name]}, and not from an index"
    if packages:
        kept = some(f"{package.name} {package.version}" for package in packages)
        notes.append(f"added to {current}, and in the new version, too: {kept}")
    notes += [
        f"{name} {mine[name]}, added to {current}, is not in the new version: {why}"
        for name, why in unfit.items()
    ]
    return Added(packages=packages, notes=notes)


def _resolved(
    lock: Lockfile, wanted: dict[str, str], choice: Choice, indexes: Indexes
) -> tuple[list[LockedPackage], dict[str, str]]:
    from . import resolve

    interpreter = choice.candidate.interpreter
    return resolve.beside(lock, wanted, choice, interpreter, indexes)


def damage(root: Root, digest: str) -> list[str]:
    """Why a version by the same lock does not do: a sentence for the plan, or none."""
    current = root.current_id()
    if current is None or digest[:8] not in current or not root.version(current).is_directory:
        return []
    found = existing.condition(root.version(current))
    if found.usable:
        return []
    return [f"{current} is damaged, and a new version takes its place: {'; '.join(found.changes)}"]
