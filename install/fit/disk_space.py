"""How much space there is where something will be written, and whether it may be."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ...facts.base import known
from ...facts.host import Disk
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
    free_inodes: int | None = None  # None where the file system has no fixed number
    network: bool | None = None  # only the Snapshot knows


def space_at(path: str | Path, snapshot: Snapshot) -> DiskSpace:
    """Look at a path that need not exist. Raises nothing: what cannot be had is None.

    With what the Snapshot knows beyond it of the same file system: its network, this user's quota.
    """
    nearest = _nearest(Path(path).absolute())
    try:
        state, device = os.statvfs(nearest), nearest.stat().st_dev
    except OSError:
        return DiskSpace(path=str(path))
    space = DiskSpace(
        path=str(path),
        device=device,
        free_mib=state.f_bavail * state.f_frsize // _MIB if state.f_blocks else None,
        noexec=bool(state.f_flag & os.ST_NOEXEC),
        read_only=bool(state.f_flag & os.ST_RDONLY),
        writable=nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK),
        free_inodes=state.f_favail if state.f_files else None,
    )
    for disk in _disks(snapshot):
        try:
            if _nearest(Path(disk.path)).stat().st_dev == device:
                return _with_disk(space, disk)
        except OSError:
            continue
    return space


def space_of_snapshot(snapshot: Snapshot) -> DiskSpace | None:
    """The space on another machine, from its Snapshot alone; None where that does not say."""
    disk = next((disk for disk in _disks(snapshot) if "environments" in disk.roles), None)
    if disk is None:
        return None
    space = DiskSpace(
        path=disk.path,
        free_mib=known(disk.free_mib),
        noexec=known(disk.noexec),
        read_only=known(disk.read_only),
        writable=known(disk.writable) is not False,
        free_inodes=known(disk.free_inodes),
    )
    return _with_disk(space, disk)


def gib(mib: float) -> str:
    """ "3.1 GiB", and "412 MiB" below one."""
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"


def _disks(snapshot: Snapshot) -> list[Disk]:
    host = snapshot.machine.host
    return [] if host is None or host.facts is None else host.facts.disks


def _with_disk(space: DiskSpace, disk: Disk) -> DiskSpace:
    return msgspec.structs.replace(space, network=known(disk.network))


def _nearest(path: Path) -> Path:
    return next((p for p in (path, *path.parents) if os.path.lexists(p)), Path("/"))
