"""How much room there is where something will be written, and whether it may be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from ...facts.base import Unavailable
from ...facts.host import Disk
from ...facts.snapshot import Snapshot

T = TypeVar("T")

_MIB = 1024 * 1024


class DiskSpace(msgspec.Struct, frozen=True, kw_only=True):
    """The file system under one path, looked at where its nearest existing parent is."""

    path: str  # as asked
    device: int  # st_dev: two paths with the same one share their room
    free_mib: int | None  # for this user; None where the file system does not say
    noexec: bool | None
    read_only: bool | None
    writable: bool  # by this user, in the nearest directory that exists
    free_inodes: int | None  # None where the file system has no fixed number
    network: bool | None = None  # only the Snapshot knows: ``with_disk``


def room_at(path: str | Path) -> DiskSpace:
    """Look at a path that need not exist. Raises nothing: what cannot be had is None."""
    nearest = _nearest(Path(path).absolute())
    try:
        state, device = os.statvfs(nearest), nearest.stat().st_dev
    except OSError:
        return DiskSpace(
            path=str(path),
            device=-1,
            free_mib=None,
            noexec=None,
            read_only=None,
            writable=False,
            free_inodes=None,
        )
    return DiskSpace(
        path=str(path),
        device=device,
        free_mib=state.f_bavail * state.f_frsize // _MIB if state.f_blocks else None,
        noexec=bool(state.f_flag & os.ST_NOEXEC),
        read_only=bool(state.f_flag & os.ST_RDONLY),
        writable=nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK),
        free_inodes=state.f_favail if state.f_files else None,
    )


def with_disk(room: DiskSpace, disk: Disk) -> DiskSpace:
    """The room with what the Snapshot says beyond it of the same place: its network, this user's quota."""
    free = [room.free_mib, _known(disk.quota_free_mib)]
    return msgspec.structs.replace(
        room,
        network=_known(disk.network),
        free_mib=min((mib for mib in free if mib is not None), default=None),
    )


def room_of_snapshot(snapshot: Snapshot, role: str = "environments") -> DiskSpace | None:
    """The room on another machine, from its Snapshot alone; None where that does not say."""
    host = snapshot.machine.host
    disks = [] if host is None or host.facts is None else host.facts.disks
    disk = next((disk for disk in disks if role in disk.roles), None)
    if disk is None:
        return None
    writable = _known(disk.writable)
    room = DiskSpace(
        path=disk.path,
        device=-1,
        free_mib=_known(disk.free_mib),
        noexec=_known(disk.noexec),
        read_only=_known(disk.read_only),
        writable=True if writable is None else writable,
        free_inodes=_known(disk.free_inodes),
    )
    return with_disk(room, disk)


def _nearest(path: Path) -> Path:
    for candidate in (path, *path.parents):
        if os.path.lexists(candidate):
            return candidate
    return Path("/")


def _known(value: T | Unavailable) -> T | None:
    return None if isinstance(value, Unavailable) else value
