"""Checks on how the file systems for environments and caches are mounted, and whether they answer."""

from __future__ import annotations

from ...facts.host import Disk
from ...findings.subjects import about_file
from ..reading import CannotJudge, SnapshotView, Unavailable, known, need
from ..verdicts import Params, Passed, Verdicts, check, fail, fill_in, unjudged, warn, word
from .places import (
    DEAD,
    NAMES,
    VARIABLES,
    by_mount,
    disks,
    evidence,
    framework_installed,
    host_of,
    mount,
    roles,
)

NOEXEC = fail(
    "mounted-noexec",
    "a directory is noexec",
    "{mount} is mounted noexec, and {role} is there ({path}): no library can be loaded from it.",
    "Keep environments on another disk. If noexec is no rule here, remove it from /etc/fstab.",
    f"export XDG_DATA_HOME={fill_in('DIRECTORY', 'one on another disk')}",
)
_CLOSED = warn(
    "closed",
    "a directory cannot be written",
    "{path} ({role}) is {why}: ",
    "Use a directory that this user may write to.",
)
# By the directory's role; the worst first.
CLOSED = {
    role: _CLOSED.variant(f"{role}-closed", severity=severity, sentence=_CLOSED.sentence + effect)
    for role, severity, effect in (
        ("temporary", "fail", "pip, compilers and TensorFlow cannot write their temporary files."),
        ("environments", "warn", "no environment can be installed there."),
        ("cache", "warn", "downloads are not kept, and installers may refuse to work without it."),
    )
}


@check(
    "HOST-006",
    title="Environments can be written and run where they go",
    causes=(NOEXEC, *CLOSED.values()),
    about="An environment's libraries are mapped into memory as programs.",
    sources=["mount(8), noexec; mmap(2), EPERM; Python's tempfile documentation, TMPDIR"],
    follows=(DEAD,),
)
def usable(view: SnapshotView) -> Verdicts:
    places = disks(view, "environments", "cache", "temporary", "target")
    for disk in places:
        try:
            yield from _noexec(view, disk)
            yield from _closed(view, disk)
        except CannotJudge as why:
            yield unjudged(why, about_file(disk.path))
    hardened = any("temporary" in disk.roles and known(disk.noexec) for disk in places)
    note = ", temporary files noexec: set TMPDIR to build packages from source" if hardened else ""
    yield Passed("writable and executable" + note)


def _noexec(view: SnapshotView, disk: Disk) -> Verdicts:
    libraries = [role for role in roles(disk) if role in ("environments", "target")]
    noexec = need(disk.noexec, f"mount options of {disk.path}") if libraries else False
    if noexec:
        params: Params = {"mount": mount(disk), "role": NAMES[libraries[0]], "path": disk.path}
        yield NOEXEC.found(about_file(disk.path), [evidence(view, disk, "noexec")], **params)


def _closed(view: SnapshotView, disk: Disk) -> Verdicts:
    role = next((role for role in CLOSED if role in disk.roles), None)
    if role is None or (role == "environments" and framework_installed(view)):
        return
    field, why = "read_only", "read-only"
    if not need(disk.read_only, f"mount options of {disk.path}"):
        field, why = "writable", "not writable for this user"
        if known(disk.writable) is not False:
            return
    export = f"export {VARIABLES[role]}={fill_in('DIRECTORY', 'one that you may write to')}"
    yield CLOSED[role].found(
        about_file(disk.path),
        [evidence(view, disk, field)],
        commands=[f"ls -ld {word(disk.path)}", export],
        path=disk.path,
        role=NAMES[role],
        why=why,
    )


SILENT = fail(
    "mount-does-not-answer",
    "a disk does not answer",
    "The file system at {mount} does not answer: every program that opens a file in {roles} hangs.",
    "Check whether its server is up and reachable; unmount it lazily if it is gone for good.",
)


@check(
    DEAD,
    title="Environments and caches are on disks that answer",
    causes=(SILENT,),
    about="A mount whose server is gone is a failure: every program that touches it hangs.",
    sources=["proc(5), mountinfo; uv documentation, cache directory; microsoft/WSL#4197"],
)
def local(view: SnapshotView) -> Verdicts:
    for group in by_mount(host_of(view).disks):
        free, where = group[0].free_mib, mount(group[0])
        if isinstance(free, Unavailable) and free.unavailable == "timeout":
            unmount = [f"sudo umount -l {word(where)}"] * bool(known(group[0].mount_point))
            yield SILENT.found(
                about_file(where),
                [evidence(view, group[0], "free_mib")],
                commands=[
                    "grep -E ' (nfs4?|cifs|smb3|lustre|ceph|9p|fuse[^ ]*) ' /proc/mounts",
                    *unmount,
                ],
                mount=where,
                roles=" or ".join(NAMES[role] for role in roles(*group)),
            )
    for group in by_mount(disks(view, "cache", "environments")):
        yield from _remote(view, group)


def _remote(view: SnapshotView, group: list[Disk]) -> Verdicts:
    disk = group[0]
    filesystem = known(disk.filesystem)
    if known(disk.network):
        yield Passed(f"{mount(disk)} is {filesystem}, a network file system: slow for environments")
    elif filesystem:
        yield Passed(f"{mount(disk)} is {filesystem}")
