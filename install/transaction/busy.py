"""Whether a command that `envcheck run` started is still running in a version.

The command inherits a shared lock on a file of the version that is never replaced, and passes it on to what
it starts itself. The kernel gives it back with the last of them, however they end. Where a file system has
no such locks, nobody can tell.
"""

from __future__ import annotations

import errno
import fcntl
import os

from .. import durable
from .layout import Version

_FIRST = 64  # of the descriptors that may be taken: shells and programs use low ones themselves


def hold(version: Version) -> None:
    """From here on this process, and what it becomes, is seen to run in the version."""
    try:
        handle = durable.opened(version.files, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.fcntl(handle, fcntl.F_DUPFD, _FIRST)  # the copy is inherited
        finally:
            os.close(handle)
    except OSError:
        return


def is_busy(version: Version) -> bool:
    try:
        handle = durable.opened(version.files, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EAGAIN)
    finally:
        os.close(handle)
    return False
