"""What a user has changed in the version in use: listed before another one takes its place."""

from __future__ import annotations

from ..lockfile import Lockfile
from ..transaction import drift, existing, record
from ..transaction.layout import Root


def notes(root: Root, lock: Lockfile) -> list[str]:
    """What becomes of the packages that differ from those of the version in use, in sentences."""
    current = root.current_id()
    version = root.version(current) if current else None
    noted = record.read(version) if version is not None and version.is_directory else None
    if version is None or noted is None or version.is_container:
        return []
    found = drift.of(version, noted.versions)
    locked = {package.name for package in lock.packages}
    added = {name: number for name, number in found.added.items() if name not in locked}
    changed = {name: f"{now} (locked: {was})" for name, (was, now) in found.changed.items()}
    sentences = {
        f"changed in {current}, and as locked in the new version": changed,
        f"removed from {current}, and back in the new version": found.removed,
        f"added to {current}, and not in the new version": added,
    }
    return [f"{what}: {drift.some(packages)}" for what, packages in sentences.items() if packages]


def damage(root: Root, digest: str) -> list[str]:
    """Why a version by the same lock is built again: a sentence for the plan, or none."""
    current = root.current_id()
    if current is None or digest[:8] not in current or not root.version(current).is_directory:
        return []
    found = existing.condition(root.version(current))
    if found.usable:
        return []
    return [f"{current} is damaged, and a new version takes its place: {'; '.join(found.changes)}"]
