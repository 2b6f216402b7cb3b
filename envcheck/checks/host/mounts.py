"""The check on whether the file systems for environments and caches answer."""

from __future__ import annotations

from ..declared import declared_causes, declared_rows
from ..kernel.events import from_log
from ..reading import SnapshotView, Unavailable, known
from ..verdicts import Passed, Verdicts, about_file, check, word
from . import places

CAUSE = declared_causes(__name__)


_LINES = declared_rows(__name__)


@check(places.DEAD)
def local(view: SnapshotView) -> Verdicts:
    for group in places.by_mount(places.host_of(view).disks):
        free, where = group[0].free_mib, places.mount(group[0])
        if isinstance(free, Unavailable) and free.unavailable == "timeout":
            unmount = [f"sudo umount -l {word(where)}"] * bool(known(group[0].mount_point))
            yield CAUSE["mount-does-not-answer"].found(
                about_file(where),
                [places.evidence(view, group[0], "free_mib")],
                commands=[
                    "grep -E ' (nfs4?|cifs|smb3|lustre|ceph|9p|fuse[^ ]*) ' /proc/mounts",
                    *unmount,
                ],
                mount=where,
                roles=" or ".join(places.NAMES[role] for role in places.roles(*group)),
            )
    yield from from_log(view, _LINES)
    for group in places.by_mount(places.disks(view, "cache", "environments")):
        if filesystem := known(group[0].filesystem):
            slow = ", a network file system: slow for environments" * (
                known(group[0].network) is True
            )
            yield Passed(f"{places.mount(group[0])} is {filesystem}{slow}")
