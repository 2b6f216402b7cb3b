"""How much space there is where something will be written, and whether it may be."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ...facts.base import known
from ...facts.snapshot import Snapshot

_MIB = 1024 * 1024


class DiskSpace(msgspec.Struct, frozen=True, kw_only=True):
    """The file system under one path, looked at where its nearest existing parent is."""

    path: str  # as asked
    device: int = -1  # st_dev: two paths with the same one share their space
    free_mib: int | None = None  # for this user; None where the file system does not say
    noexec: bool | None = None
    read_only: bool | None = None
    writable: bool = False  # by this user, in the nearest directory that exists


def space_at(path: str | Path) -> DiskSpace:
    """Look at a path that need not exist. Raises nothing: what cannot be had is None."""
    nearest = _nearest(Path(path).absolute())
    try:
        state, device = os.statvfs(nearest), nearest.stat().st_dev
    except OSError:
        return DiskSpace(path=str(path))
    return DiskSpace(
        path=str(path),
        device=device,
        free_mib=state.f_bavail * state.f_frsize // _MIB if state.f_blocks else None,
        noexec=bool(state.f_flag & os.ST_NOEXEC),
        read_only=bool(state.f_flag & os.ST_RDONLY),
        writable=nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK),
    )


def space_of_snapshot(snapshot: Snapshot, role: str = "environments") -> DiskSpace | None:
    """The space on another machine, by its Snapshot; None where that does not say. role: of a Disk."""
    host = snapshot.machine.host
    disks = [] if host is None or host.facts is None else host.facts.disks
    disk = next((disk for disk in disks if role in disk.roles), None)
    if disk is None:
        return None
    return DiskSpace(
        path=disk.path,
        free_mib=known(disk.free_mib),
        noexec=known(disk.noexec),
        read_only=known(disk.read_only),
        writable=known(disk.writable) is not False,
    )


def _nearest(path: Path) -> Path:
    return next((p for p in (path, *path.parents) if os.path.lexists(p)), Path("/"))
