"""The file systems that environments, caches and temporary files go to."""

import errno
import os

from .. import facts
from ..worker import forked
from . import mounts

STATVFS_DEADLINE = 1.5  # seconds for all directories together, which are looked at side by side
SOURCE = "statvfs, " + mounts.TABLE


def wanted(context, home):
    """The directories to look at and what each is for: a list of (path, [role, ...])."""
    environ = context.environ
    roles = []
    if home:
        cache = environ.get("XDG_CACHE_HOME") or home + "/.cache"
        data = environ.get("XDG_DATA_HOME") or home + "/.local/share"
        roles += [("home", home), ("cache", cache), ("environments", data + "/envcheck")]
    roles.append(("temporary", environ.get("TMPDIR") or "/tmp"))
    roles += [("target", path) for path in context.params.get("paths", ())]
    found = {}
    for role, path in roles:
        if os.path.isabs(path):
            names = found.setdefault(os.path.normpath(path), [])
            if role not in names:
                names.append(role)
    return sorted(found.items(), key=lambda item: item[1])


def disks(context, home):
    """A Disk for each wanted directory."""
    places = wanted(context, home)
    looks = forked.call_all(
        [lambda path=path: look(context.path(path)) for path, _roles in places], STATVFS_DEADLINE
    )
    try:
        table, trouble = mounts.read(context), None
    except OSError as error:
        table, trouble = [], facts.from_error(error)
    records = []
    for (path, roles), (outcome, seen) in zip(places, looks):
        disk = facts.Facts()
        disk.put("path", path)
        disk.put("roles", roles)
        mount, reason = _mount(context, table, path, outcome, seen)
        _put_mount(disk, mount, trouble or reason)
        _put_space(disk, mount, outcome, seen)
        records.append(disk.values)
    return records


def _mount(context, table, path, outcome, seen):
    """(the mount that the path is on, or None; the unavailable fact for None)."""
    mount = mounts.of(table, _inside(context, seen["directory"]) if outcome == "ok" else path)
    if outcome == "timeout" and mount is not None and not mount.may_hang:
        # The path leads elsewhere by a symbolic link, and nobody can follow it without hanging too.
        return None, facts.unavailable("timeout", "the path could not be followed")
    return mount, facts.unavailable("absent", "no mount above it in %s (a chroot)" % mounts.TABLE)


def look(path):
    """What the file system says of the nearest directory that exists. May hang; raises OSError."""
    directory = os.path.realpath(path)
    while True:
        try:
            os.stat(directory)
            break
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR) or directory == "/":
                raise
        directory = os.path.dirname(directory)
    stat = os.statvfs(directory)
    return {
        "directory": directory,
        "there": directory == os.path.realpath(path),
        "free_mib": stat.f_bavail * stat.f_frsize // 1048576,
        "total_mib": stat.f_blocks * stat.f_frsize // 1048576,
        "free_inodes": stat.f_favail if stat.f_files else None,
        "noexec": bool(stat.f_flag & os.ST_NOEXEC),
        "read_only": bool(stat.f_flag & os.ST_RDONLY),
        "writable": os.access(directory, os.W_OK | os.X_OK),
    }


def _inside(context, path):
    root = os.path.realpath(context.root)
    return path[len(root) :] or "/" if root != "/" and path.startswith(root) else path


def _put_mount(disk, mount, reason):
    if mount is None:
        for name in ("filesystem", "mount_point", "network"):
            disk.put(name, reason)
        return
    disk.put("filesystem", mount.filesystem)
    disk.put("mount_point", mount.point)
    if mount.network is None:
        disk.missing("network", "absent", "%s: nothing is mounted yet" % mount.filesystem)
    else:
        disk.put("network", mount.network)


def _put_space(disk, mount, outcome, seen):
    names = ("free_mib", "total_mib", "free_inodes", "noexec", "read_only", "writable", "there")
    if outcome == "ok":
        for name in names:
            disk.put(name, seen[name])
        if seen["free_inodes"] is None:
            disk.missing("free_inodes", "absent", "the file system has no fixed number of them")
        return
    why = seen or facts.unavailable(
        "timeout", "statvfs gave no answer within %g s" % STATVFS_DEADLINE
    )
    for name in names:
        disk.put(name, why)
    if mount is not None:  # the table knows these two without asking the file system
        disk.put("noexec", "noexec" in mount.options)
        disk.put("read_only", "ro" in mount.options)
