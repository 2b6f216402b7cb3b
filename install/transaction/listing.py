"""What is installed, and what state it is in; reads only."""

from __future__ import annotations

from typing import Literal

import msgspec

from . import engine_images, existing, file_list, lock, record, roots
from .journal import Journal, unfinished
from .layout import Root, Version

SCHEMA = 2

VersionStatus = Literal[
    "verified",
    "changed since",  # files are gone, not what they were, or were added (by the user's own pip)
    "unfinished",  # cut off; the next envcheck in this environment removes it
    "being built",
    "without a record",  # which was damaged since
]
Mode = Literal["wheel", "container"]
RootStatus = Literal["installed", "broken link", "nothing in use"]


class VersionState(msgspec.Struct, frozen=True, kw_only=True):
    """One version. Sizes are allocated bytes of its directory; ``bytes_shared`` of them are in files that are
    linked from elsewhere too, and are not freed by removing this one alone."""

    version: str
    in_use: bool
    status: VersionStatus
    changes: list[str] = []  # what differs from what was installed, in sentences
    stack: str = ""
    release: str = ""
    python: str = ""
    packages: int = 0
    verified_at: str = ""  # UTC
    verdict: str = ""  # the doctor's
    envcheck: str = ""
    bytes_total: int = 0
    bytes_shared: int = 0
    mode: Mode = "wheel"
    engine: str = ""  # "podman"; of a container alone, as the next three
    image: str = ""  # "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    digest: str = ""  # of its manifest, "sha256:…"
    image_bytes: int = 0  # of all its layers, as the engine says it; other images may share them


class EnvironmentState(msgspec.Struct, frozen=True, kw_only=True):
    """One root, its versions by when they were verified, the newest first."""

    name: str
    directory: str
    prefix: str  # what to activate
    current: str  # the version that ``current`` names; "" where it names none
    status: RootStatus
    versions: list[VersionState]
    bytes_total: int  # of all versions, what they share counted once
    at_work: str  # who holds the lock; "" where nobody does
    foreign: list[str]  # what lies in the directory and is not envcheck's
    mode: Mode = "wheel"  # of the version in use, else the newest


class Listing(msgspec.Struct, frozen=True):
    schema: int
    environments: list[EnvironmentState]


def listing() -> Listing:
    """Every environment of this user."""
    return Listing(SCHEMA, [look_at(root) for root in roots.known()])


def look_at(root: Root) -> EnvironmentState:
    holder = lock.holder_at_work(root)
    cut_off: VersionStatus = "being built" if holder else "unfinished"
    begun = dict.fromkeys(unfinished(root, Journal(root.journal)), cut_off)
    current = root.current_id() or ""
    there = root.versions()
    versions = [_state(version, current, begun.get(version.id)) for version in there]
    versions.sort(key=lambda v: (v.verified_at, v.version), reverse=True)
    used = root.version(current or ".")
    startable = used.python.exists() or used.start.exists()
    dangling = root.current.is_symlink() and not startable
    shown = [version for version in versions if version.in_use] or versions[:1]
    return EnvironmentState(
        name=root.name,
        directory=str(root.path),
        prefix=str(root.current),
        mode=shown[0].mode if shown else "wheel",
        current=current,
        status="broken link" if dangling else "installed" if current else "nothing in use",
        versions=versions,
        bytes_total=file_list.usage([version.directory for version in there]).total,
        at_work=holder,
        foreign=[str(path) for path in root.foreign()],
    )


def _state(version: Version, current: str, begun: VersionStatus | None) -> VersionState:
    """begun: the status of one that was never finished."""
    used = file_list.usage([version.directory])
    image = engine_images.of(version)
    known = VersionState(
        version=version.id,
        in_use=version.id == current,
        status=begun or "without a record",
        bytes_total=used.total,
        bytes_shared=used.shared,
        mode="container" if image or version.is_container else "wheel",
        engine=image.engine if image else "",
        image=image.reference if image else "",
    )
    noted = None if begun else record.read(version)
    if noted is None:
        return known
    changes = existing.condition(version).changes
    same = ("stack", "release", "python", "verified_at", "envcheck", "mode", "engine", "image")
    return msgspec.structs.replace(
        known,
        **{name: getattr(noted, name) for name in same},
        status="changed since" if changes else "verified",
        changes=changes,
        packages=len(noted.versions),
        verdict=noted.health.verdict,
        digest=noted.image_digest,
        image_bytes=noted.image_bytes if image and image.tag else 0,
    )
