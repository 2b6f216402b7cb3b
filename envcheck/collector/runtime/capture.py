"""Where a child's output goes: a file in memory, so that neither a pipe nor a full disk matters."""

import errno
import os
import resource

_ROOM = 1 << 20  # bytes that such a file must be allowed to have
_SHARED_MEMORY = "/dev/shm"
_MFD_CLOEXEC = 1


def capture_file():
    """A file for a child's output, in memory where the kernel has that. Raises OSError."""
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if allowed != resource.RLIM_INFINITY and allowed < _ROOM:
        raise OSError(errno.EFBIG, "the limit on file sizes (ulimit -f) has no room for its output")
    try:
        return os.fdopen(_memory_file(), "w+b", 0)
    except Exception as error:  # a kernel before 3.17, a C library before glibc 2.27, or forbidden
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
            raise
    import tempfile

    try:
        return tempfile.TemporaryFile(buffering=0)
    except OSError:
        return tempfile.TemporaryFile(buffering=0, dir=_SHARED_MEMORY)


def _memory_file():
    if hasattr(os, "memfd_create"):
        return os.memfd_create("envcheck")
    import ctypes  # Python before 3.8

    descriptor = ctypes.CDLL(None, use_errno=True).memfd_create(b"envcheck", _MFD_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return descriptor
