"""The check on room for environments, caches and temporary files."""

from __future__ import annotations

from ...facts.host import Disk
from ..reading import CannotJudge, SnapshotView, need
from ..verdicts import Passed, Verdicts, about_file, check, fail, fill_in, unjudged, word
from . import places
from .places import evidence, framework_installed, gigabytes, mount, roles

# Measured for tensorflow[and-cuda] 2.21, 43 packages: 6.36 GB installed, from 3.28 GB of wheels.
ENVIRONMENT_MIB = 6066
WHEELS_MIB = 3129
FULL_MIB = 100  # below it, a disk counts as full

FULL = fail(
    "disk-full",
    "too little disk space",
    "{where} is full, {mib} MiB free: every program that writes there fails.",
    "Make room, or send environments, caches and temporary files to a larger disk.",
)
TIGHT = FULL.variant(
    "little-disk-space",
    severity="warn",
    sentence="{where} has {gb} free: installing TensorFlow with its CUDA libraries takes up to {needed}"
    " there and would stop with 'No space left on device'.",
)


@check(
    "HOST-005",
    title="Enough disk space for environments and caches",
    causes=(FULL, TIGHT),
    about="A TensorFlow environment with its CUDA libraries takes 6.36 GB, and the wheels it comes from 3.28"
    " GB, in the installer's cache or among the temporary files.",
    sources=["measured: tensorflow[and-cuda] 2.21, 43 packages; pip#5816; pip#12868"],
    follows=(places.DEAD,),
)
def room(view: SnapshotView) -> Verdicts:
    disks = places.disks(view, "home", "cache", "environments", "temporary")
    for group in places.by_mount(disks):
        try:
            yield from _space(view, group)
        except CannotJudge as why:
            yield unjudged(why, about_file(mount(group[0])))


def _space(view: SnapshotView, group: list[Disk]) -> Verdicts:
    disk, held = group[0], roles(*group)
    free = need(disk.free_mib, f"free space of {disk.path}")
    needed = ENVIRONMENT_MIB if "environments" in held else 0
    # Installers keep the wheels in their cache or among the temporary files, not in both.
    needed += WHEELS_MIB if "cache" in held or "temporary" in held else 0
    needed *= not framework_installed(view)
    if free >= max(needed, FULL_MIB):
        yield Passed(f"{mount(disk)} has {gigabytes(free)} free")
        return
    moved = [places.VARIABLES[role] for role in held if role in places.VARIABLES]
    larger = fill_in("DIRECTORY", "one on a larger disk")
    export = [f"export {name}={larger}" for name in moved]
    yield (FULL if free < FULL_MIB else TIGHT).found(
        about_file(mount(disk)),
        [evidence(view, disk, "free_mib")],
        commands=[f"df -h {word(mount(disk))}", "python3 -m pip cache purge", *export],
        where=places.called(group),
        mib=free,
        gb=gigabytes(free),
        needed=gigabytes(needed),
    )
