"""The mount table, /proc/self/mountinfo (see proc(5)), read."""

import os
import re

from .. import files

TABLE = "/proc/self/mountinfo"

NETWORK = frozenset(
    (
        "acfs afs beegfs beegfs_nodev ceph cifs coda davfs fuse.beegfs fuse.blobfuse "
        "fuse.blobfuse2 fuse.ceph fuse.ceph-fuse fuse.cvmfs2 fuse.davfs2 fuse.dfs fuse.gcsfuse "
        "fuse.glusterfs fuse.goofys fuse.juicefs fuse.mountpoint-s3 fuse.quobyte fuse.rclone "
        "fuse.s3fs fuse.seaweedfs fuse.sshfs fuse.weed glusterfs gpfs lizardfs lustre mfs moosefs "
        "ncpfs nfs nfs4 orangefs panfs pvfs2 smb3 smbfs wekafs"
    ).split()
)


class Mount(object):
    """One line of the table. ``options`` holds the mount's and the file system's, as a set."""

    def __init__(self, root, point, filesystem, source, options):
        self.root = root
        self.point = point
        self.filesystem = filesystem
        self.source = source
        self.options = options

    @property
    def network(self):
        """Is the data on another machine? None where the table does not tell."""
        if self.filesystem == "9p":  # over virtio it is a directory of this machine's hypervisor
            return bool({"trans=tcp", "trans=rdma"} & self.options)
        if self.filesystem == "autofs":
            return None  # a promise of a mount, not yet one
        return self.filesystem in NETWORK

    @property
    def may_hang(self):
        """Does something outside of the kernel answer for it?"""
        return self.network is not False or self.filesystem.startswith("fuse")


def read(context):
    """The mounts, in the order in which they were made. Raises OSError."""
    return parse(os.fsdecode(files.read(context.path(TABLE), 8 << 20)))


def parse(text):
    """The mounts of a mountinfo text; lines that are none are left out."""
    mounts = []
    for line in text.split("\n"):
        fields = line.split(" ")
        if "-" not in fields[6:]:
            continue
        end = fields.index("-", 6)
        if len(fields) < end + 4:
            continue
        options = set(fields[5].split(",")) | set(fields[end + 3].split(","))
        mounts.append(
            Mount(
                _unescape(fields[3]),
                _unescape(fields[4]),
                fields[end + 1],
                _unescape(fields[end + 2]),
                options,
            )
        )
    return mounts


def of(mounts, path):
    """The mount that ``path`` (absolute, without symbolic links) is on, or None."""
    best = None
    for mount in mounts:  # of two on one point, the later one hides the earlier
        if _below(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def _below(path, point):
    return point == "/" or path == point or path.startswith(point + "/")


def _unescape(field):
    return re.sub(r"\\([0-3][0-7]{2})", lambda match: chr(int(match.group(1), 8)), field)
