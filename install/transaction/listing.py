"""What is installed, and what state it is in; reads only."""

from __future__ import annotations

from typing import Literal

import msgspec

from . import locking, manifest, record, roots
from .journal import Journal
from .layout import Root, Version
from .recover import unfinished

SCHEMA = 1

VersionStatus = Literal[
    "verified",
    "changed since",  # files are gone, not what they were, or were added (by the user's own pip)
    "unfinished",  # cut off; the next envcheck in this environment removes it
    "being built",
    "without a record",  # which was damaged since: nobody can tell what it holds
]
RootStatus = Literal["installed", "broken link", "nothing in use"]


class VersionState(msgspec.Struct, frozen=True, kw_only=True):
    """One version. Sizes are allocated bytes; ``bytes_shared`` of them are in files that are linked from
    elsewhere too (uv's cache, another version), and are not freed by removing this one alone."""

    version: str
    in_use: bool
    status: VersionStatus
    changes: list[str]  # what differs from what was installed, in sentences
    stack: str = ""
    release: str = ""
    python: str = ""
    packages: int = 0
    verified_at: str = ""  # UTC
    verdict: str = ""  # the doctor's
    envcheck: str = ""
    bytes_total: int = 0
    bytes_shared: int = 0


class EnvironmentState(msgspec.Struct, frozen=True, kw_only=True):
    """One root, its versions by when they were verified, the newest first."""

    name: str
    directory: str
    prefix: str  # what to activate
    current: str  # the version that ``current`` names; "" where it names none
    status: RootStatus
    versions: list[VersionState]
    bytes_total: int  # of all versions, what they share counted once
    at_work: str = ""  # who holds the lock
    foreign: list[str] = []  # what lies in the directory and is not envcheck's


class Listing(msgspec.Struct, frozen=True):
    schema: int
    environments: list[EnvironmentState]


def listing() -> Listing:
    """Every environment of this user."""
    return Listing(SCHEMA, [look_at(root) for root in roots.known()])


def look_at(root: Root) -> EnvironmentState:
    holder = locking.holder_at_work(root)
    begun = set(unfinished(root, Journal(root.journal)))
    current = root.current_id()
    there = root.versions()
    versions = [_version(v, v.id == current, v.id in begun, holder is not None) for v in there]
    dangling = root.current.is_symlink() and not root.version(current or ".").python.exists()
    return EnvironmentState(
        name=roots.name_of(root),
        directory=str(root.path),
        prefix=str(root.current),
        current=current or "",
        status="broken link" if dangling else "installed" if current else "nothing in use",
        versions=sorted(versions, key=lambda v: (v.verified_at, v.version), reverse=True),
        bytes_total=manifest.usage([version.directory for version in there]).total,
        at_work=str(holder) if holder else "",
        foreign=[str(path) for path in root.foreign()],
    )


def _version(version: Version, in_use: bool, begun: bool, at_work: bool) -> VersionState:
    noted = record.read(version)
    used = manifest.usage([version.directory])
    if noted is None or begun:
        built: VersionStatus = "being built" if at_work else "unfinished"
        return VersionState(
            version=version.id,
            in_use=in_use,
            status=built if begun else "without a record",
            changes=[],
            bytes_total=used.total,
            bytes_shared=used.shared,
        )
    changes = manifest.intact(version.directory)
    return VersionState(
        version=version.id,
        in_use=in_use,
        status="changed since" if changes else "verified",
        changes=changes,
        stack=noted.stack,
        release=noted.release,
        python=noted.python,
        packages=len(noted.versions),
        verified_at=noted.verified_at,
        verdict=noted.health.verdict,
        envcheck=noted.envcheck,
        bytes_total=used.total,
        bytes_shared=used.shared,
    )
