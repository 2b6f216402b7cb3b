"""The driver's device nodes in /dev."""

import glob
import os
import stat

from ..facts import unavailable

FOLDERS = ("/dev", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels")
NODES = "/dev/nvidia*"
LOADED = "/proc/driver/nvidia/version"
LIMIT = 300  # nodes


def present():
    """The driver's nodes that are there now."""
    return set(glob.glob(NODES))


def remove_useless(before):
    """Remove nodes that NVIDIA's libraries made in a look as root, where no driver is there to use them."""
    for path in sorted(present() - before):
        try:
            ours = stat.S_ISCHR(os.lstat(path).st_mode) and not os.path.exists(LOADED)
            if ours:
                os.unlink(path)
        except OSError:
            continue  # not ours to remove, or gone


def device_nodes(context):
    """The driver's nodes: /dev/nvidia*, and what lies in the directories of capabilities."""
    users, groups = _names(context, "/etc/passwd"), _names(context, "/etc/group")
    nodes = []
    for folder in FOLDERS:
        try:
            names = sorted(os.listdir(context.path(folder)))
        except OSError:
            if folder == "/dev":
                raise
            continue
        for name in names:
            if name.startswith("nvidia") or folder != "/dev":
                node = _node(context, "%s/%s" % (folder, name), users, groups)
                if node:
                    nodes.append(node)
    return nodes[:LIMIT]


def _node(context, path, users, groups):
    """One node's facts; None for a directory, and for a link that leads nowhere."""
    real = context.path(path)
    try:
        status = os.stat(real)
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return None
    return {
        "path": path,
        "mode": "%04o" % stat.S_IMODE(status.st_mode),
        "owner": users.get(status.st_uid, str(status.st_uid)),
        "group": groups.get(status.st_gid, str(status.st_gid)),
        "usable": os.access(real, os.R_OK | os.W_OK),
        "char_link": _char_link(context, status, real),
    }


def _char_link(context, status, real):
    if not stat.S_ISCHR(status.st_mode):
        return unavailable("error", "not a character device")
    number = "%d:%d" % (os.major(status.st_rdev), os.minor(status.st_rdev))
    try:
        return os.path.samefile(context.path("/dev/char/" + number), real)
    except OSError:
        return False


def _names(context, path):
    """{number: name} of the machine's own users or groups; the network is not asked for others."""
    names = {}
    for line in context.text(path).splitlines():
        parts = line.split(":")
        if len(parts) > 2 and parts[2].isdecimal():
            names.setdefault(int(parts[2]), parts[0])
    return names
