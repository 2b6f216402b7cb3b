"""What the checks on the host share: its facts, and the directories that matter by their roles."""

from __future__ import annotations

from ...facts.host import Disk, Host
from ..reading import Skip, SnapshotView, facts_of, known
from ..verdicts import Evidence

NAMES = {
    "home": "the home directory",
    "cache": "the cache",
    "environments": "the place for environments",
    "temporary": "the directory for temporary files",
    "target": "the target",
}
# The variables that move them elsewhere.
VARIABLES = {"environments": "XDG_DATA_HOME", "cache": "XDG_CACHE_HOME", "temporary": "TMPDIR"}
# The check that fails where a file system does not answer, which explains what the others miss.
DEAD = "HOST-007"


def host_of(view: SnapshotView) -> Host:
    return facts_of(view.machine.host, "the host's facts")


def gigabytes(mib: int) -> str:
    return f"{mib * 1048576 / 1e9:.1f} GB"


def disks(view: SnapshotView, *wanted: str) -> list[Disk]:
    """The disks with one of these roles; raises Skip where the snapshot has none."""
    found = [disk for disk in host_of(view).disks if set(disk.roles) & set(wanted)]
    if not found:
        raise Skip("disks: not in this snapshot")
    return found


def by_mount(group: list[Disk]) -> list[list[Disk]]:
    mounts = dict.fromkeys(map(mount, group))
    return [[disk for disk in group if mount(disk) == one] for one in mounts]


def mount(disk: Disk) -> str:
    """Where the disk's file system is mounted, or the directory itself where that is not known."""
    return known(disk.mount_point) or disk.path


def roles(*group: Disk) -> list[str]:
    """The roles that these disks have together, in NAMES' order."""
    held = {role for disk in group for role in disk.roles}
    return [role for role in NAMES if role in held]


def called(group: list[Disk]) -> str:
    return f"{mount(group[0])} ({', '.join(NAMES[role] for role in roles(*group))})"


def evidence(view: SnapshotView, disk: Disk, field: str) -> Evidence:
    path = f"machine.host.disks[{host_of(view).disks.index(disk)}].{field}"
    return view.evidence(path, getattr(disk, field))


def framework_installed(view: SnapshotView) -> bool:
    """Whether the target has a framework already, so that no room is needed for installing one."""
    target = view.snapshot.target
    if target is None:
        return False
    probes = (target.tensorflow, target.torch, target.jax)
    return any(p.facts.imported for p in probes if p is not None and p.facts is not None)
