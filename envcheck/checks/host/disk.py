"""The check on room for environments, caches and temporary files."""

from __future__ import annotations

from ...data.versions import parse_version
from ...facts.host import Disk
from ..declared import declared_causes, declared_rows
from ..kernel.events import from_log
from ..nvidia_devices import event_evidence
from ..reading import CannotJudge, Kernel, SnapshotView, fact, facts_or, known, need
from ..verdicts import Finding, Passed, Verdicts, about_file, check, fill_in, unjudged, word
from . import places
from .places import evidence, framework_installed, gigabytes, mount, roles

CAUSE = declared_causes(__name__)

# Measured for tensorflow[and-cuda] 2.21, 43 packages: 6.36 GB installed, from 3.28 GB of wheels.
ENVIRONMENT_MIB = 6066
WHEELS_MIB = 3129
FULL_FILES = 100
FULL_MIB = 100  # below it, a disk counts as full

NO_INODES = CAUSE["no-inodes"]

_LINES = declared_rows(__name__)


@check("HOST-005")
def room(view: SnapshotView) -> Verdicts:
    disks = places.disks(view, "home", "cache", "environments", "temporary")
    if not any(known(disk.read_only) for disk in disks):
        yield from from_log(view, _LINES)
    for group in places.by_mount(disks):
        try:
            yield from _space(view, group)
        except CannotJudge as why:
            yield unjudged(why, about_file(mount(group[0])))


def _space(view: SnapshotView, group: list[Disk]) -> Verdicts:
    disk, held = group[0], roles(*group)
    gone = next((d for d in group if "temporary" in d.roles and known(d.there) is False), None)
    if gone is not None:
        yield CAUSE["temporary-directory-missing"].found(
            about_file(gone.path),
            [evidence(view, gone, "there")],
            commands=[f"mkdir -p {word(gone.path)}", "unset TMPDIR"],
            path=gone.path,
        )
    if finding := _read_only(view, group):
        yield finding
        return
    if "temporary" in held and known(disk.noexec) and _compiles(view):
        yield CAUSE["temporary-noexec"].found(
            about_file(mount(disk)),
            [evidence(view, disk, "noexec")],
            commands=[
                *_elsewhere(["temporary"], "one on another mount"),
                f"findmnt {word(mount(disk))}",
            ],
            where=places.called(group),
        )
    free = need(disk.free_mib, f"free space of {disk.path}")
    needed = ENVIRONMENT_MIB if "environments" in held else 0
    # Installers keep the wheels in their cache or among the temporary files, not in both.
    needed += WHEELS_MIB if "cache" in held or "temporary" in held else 0
    needed *= not framework_installed(view)
    files = known(disk.free_inodes)
    out_of_files = files is not None and files < FULL_FILES
    if free >= max(needed, FULL_MIB) and not out_of_files:
        yield Passed(f"{mount(disk)} has {gigabytes(free)} free")
        return
    cause = (
        NO_INODES
        if out_of_files and free >= FULL_MIB
        else CAUSE["disk-full"]
        if free < FULL_MIB
        else CAUSE["little-disk-space"]
    )
    what, place = "inodes" if cause is NO_INODES else "mib", word(mount(disk))
    look = ["python3 -m pip cache purge"] * ("cache" in held)
    if what == "inodes":
        look = [f"du --inodes -d 2 {place} | sort -n | tail"]
    yield cause.found(
        about_file(mount(disk)),
        [evidence(view, disk, f"free_{what}")],
        commands=[
            f"df -{'i' if what == 'inodes' else 'h'} {place}",
            *look,
            *_elsewhere(held, "one on a larger disk"),
        ],
        where=places.called(group),
        mib=free,
        files=files,
        gb=gigabytes(free),
        needed=gigabytes(needed),
    )


def _compiles(view: SnapshotView) -> bool:
    """Whether the target has a PyTorch with torch.compile."""
    target = view.snapshot.target
    version = parse_version(fact(target.torch, "version") or "") if target else None
    return version is not None and version.major >= 2


def _read_only(view: SnapshotView, group: list[Disk]) -> Finding | None:
    """Of /, what need not be written may be read-only: image-based systems are built like that."""
    temporary = next((disk for disk in group if "temporary" in disk.roles), None)
    disk = temporary or group[0]
    held, where = roles(*group), mount(disk)
    log = known(facts_or(view.machine.kernel, Kernel).log) or []
    field = "read_only"
    if known(disk.read_only) is not True:
        field = "writable"
        if temporary is None or known(disk.writable) is not False:
            return None
    elif temporary is None and where == "/":
        return None
    return (CAUSE["read-only"] if temporary else CAUSE["home-read-only"]).found(
        about_file(where),
        [
            evidence(view, disk, field),
            *(event_evidence(view, one) for one in log if one.kind == "read-only"),
        ],
        commands=[
            *_elsewhere(held, "one that can be written"),
            f"findmnt --target {word(disk.path)}",
            "sudo dmesg | grep -iE 'remount|I/O error|EXT4-fs|XFS|BTRFS'",
            f"ls -ld {word(disk.path)}"
            if field == "writable"
            else f"sudo mount -o remount,rw {word(where)}  # once it is repaired",
        ],
        where=places.called(group),
        why="mounted read-only" if field == "read_only" else "not by this user",
        inside=f" Or start the container with a file system for it (--tmpfs {word(disk.path)})."
        if known(places.host_of(view).container)
        else "",
    )


def _elsewhere(held: list[str], what: str) -> list[str]:
    names = [places.VARIABLES[role] for role in held if role in places.VARIABLES]
    return [f"export {name}={fill_in('DIRECTORY', what)}" for name in names]
