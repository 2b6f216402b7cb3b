"""Opens files that others made: a FIFO or a device in a file's place must not hold anybody up."""

import errno
import os
import stat

_CHUNK = 1 << 18  # bytes; to ask for all at once would reserve the limit's worth of memory


def open_regular(path):
    """The regular file at ``path``, open for reading bytes. Raises OSError, also for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "not a regular file", path)


def read(path, limit):
    """At most ``limit`` bytes of the regular file at ``path``. Raises OSError."""
    parts = []
    with open_regular(path) as file:
        while limit > 0:
            part = file.read(min(limit, _CHUNK))
            if not part:
                break
            parts.append(part)
            limit -= len(part)
    return b"".join(parts)


def names(folder):
    """The sorted names in a directory; [] where it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
