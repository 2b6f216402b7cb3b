"""The check on room for environments, caches and temporary files."""

from __future__ import annotations

from ...facts.host import Disk
from ..reading import CannotJudge, SnapshotView, known, need
from ..verdicts import (
    Cause,
    Passed,
    Verdicts,
    about_file,
    check,
    fail,
    fill_in,
    unjudged,
    warn,
    word,
)
from .places import (
    DEAD,
    NAMES,
    VARIABLES,
    by_mount,
    disks,
    evidence,
    framework_installed,
    gigabytes,
    mount,
    roles,
)

# Measured for tensorflow[and-cuda] 2.21, 43 packages: 6.36 GB installed, from 3.28 GB of wheels.
ENVIRONMENT_MIB = 6066
WHEELS_MIB = 3129
FULL_MIB = 100  # below it, a disk counts as full
ENVIRONMENT_INODES = 50_000
FULL_INODES = 1_000
USES = ("home", "cache", "environments", "temporary")


_MAKE_ROOM = "Make room, or send environments, caches and temporary files to a larger disk."
FULL = fail(
    "disk-full",
    "too little disk space",
    "{where} is full, {mib} MiB {free}: every program that writes there fails.",
    _MAKE_ROOM,
)
TIGHT = warn(
    "little-disk-space",
    "too little disk space",
    "{where} has {gb} {free}: installing TensorFlow with its CUDA libraries takes up to {needed} there and"
    " would stop with 'No space left on device'.",
    _MAKE_ROOM,
)
_INODES = (
    "too few free inodes",
    "{where} has {inodes} free inodes: there is no room for an environment's tens of thousands of files,"
    " however many bytes are free.",
    "Remove directories with many small files, or use another file system.",
)
NO_INODES = Cause("no-inodes", "fail", *_INODES)
FEW_INODES = Cause("few-inodes", "warn", *_INODES)


@check(
    "HOST-005",
    title="Enough disk space for environments and caches",
    causes=(FULL, TIGHT, NO_INODES, FEW_INODES),
    about="A TensorFlow environment with its CUDA libraries takes 6.36 GB, and the wheels it comes from"
    " 3.28 GB, in the installer's cache or among the temporary files. Judged by what this user may still"
    " write on each file system: free blocks, free inodes, and the quota.",
    sources=["measured: tensorflow[and-cuda] 2.21, 43 packages; pip#5816; pip#12868"],
    follows=(DEAD,),
)
def room(view: SnapshotView) -> Verdicts:
    for group in by_mount(disks(view, *USES)):
        try:
            yield from _space(view, group)
            yield from _inodes(view, group)
        except CannotJudge as why:
            yield unjudged(why, about_file(mount(group[0])))


def _needed(held: list[str]) -> int:
    """MiB that installing takes on a file system with these roles."""
    environment = ENVIRONMENT_MIB if "environments" in held else 0
    # Installers keep the wheels in their cache or among the temporary files, not in both.
    return environment + (WHEELS_MIB if "cache" in held or "temporary" in held else 0)


def _space(view: SnapshotView, group: list[Disk]) -> Verdicts:
    disk, held = group[0], roles(*group)
    field, left = "free_mib", "free"
    free = need(disk.free_mib, f"free space of {disk.path}")
    quota = known(disk.quota_free_mib)
    if quota is not None and quota < free:
        field, left, free = "quota_free_mib", "of this user's quota left", quota
    needed = 0 if framework_installed(view) else _needed(held)
    if free >= max(needed, FULL_MIB):
        yield Passed(f"{mount(disk)} has {gigabytes(free)} {left}")
        return
    moved = [VARIABLES[role] for role in held if role in VARIABLES]
    yield (FULL if free < FULL_MIB else TIGHT).found(
        about_file(mount(disk)),
        [evidence(view, disk, field)],
        commands=[
            f"df -h {word(mount(disk))}",
            "python3 -m pip cache purge",
            *(f"export {name}={fill_in('DIRECTORY', 'one on a larger disk')}" for name in moved),
        ],
        where=_name(group),
        mib=free,
        gb=gigabytes(free),
        free=left,
        needed=gigabytes(needed),
    )


def _inodes(view: SnapshotView, group: list[Disk]) -> Verdicts:
    disk = group[0]
    free = known(disk.free_inodes)
    installing = "environments" in roles(*group) and not framework_installed(view)
    if free is None or free >= (ENVIRONMENT_INODES if installing else FULL_INODES):
        return
    yield (NO_INODES if free < FULL_INODES else FEW_INODES).found(
        about_file(mount(disk)),
        [evidence(view, disk, "free_inodes")],
        commands=[
            f"df -i {word(mount(disk))}",
            f"sudo du --inodes -x -d 3 {word(mount(disk))} | sort -n | tail",
        ],
        where=_name(group),
        inodes=free,
    )


def _name(group: list[Disk]) -> str:
    """A sentence's subject: the mount point and what is kept there."""
    return f"{mount(group[0])} ({', '.join(NAMES[role] for role in roles(*group))})"
