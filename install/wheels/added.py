"""What a user has added to the version in use: listed before another one takes its place."""

from __future__ import annotations

from collections.abc import Mapping

from .. import drift
from ..lockfile import Lockfile
from ..transaction import existing
from ..transaction.layout import Root


def notes(root: Root, lock: Lockfile) -> list[str]:
    """What becomes of the packages that differ from the lock of the version in use, in sentences."""
    current = root.current_id()
    version = root.version(current) if current else None
    if version is None or version.is_container or not version.is_directory:
        return []
    found = drift.of(version.directory)
    locked = {package.name for package in lock.packages}
    added = {name: number for name, number in found.added.items() if name not in locked}
    changed = [f"{n} {now} (locked: {was})" for n, (was, now) in found.changed.items()]
    sentences = {
        f"changed in {current}, and as locked in the new version: {drift.some(changed)}": changed,
        f"removed from {current}, and back in the new version: {_listed(found.removed)}": found.removed,
        f"added to {current}, and not in the new version: {_listed(added)}": added,
    }
    return [sentence for sentence, packages in sentences.items() if packages]


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
    return drift.some(f"{name} {version}" for name, version in versions.items())
