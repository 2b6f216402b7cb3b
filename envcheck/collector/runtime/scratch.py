"""An empty directory to work in, made for one collection."""

_locks = {}


def make():
    """A new empty directory; the root where nothing can be written, and so nothing needs to be."""
    import fcntl
    import os
    import tempfile

    try:
        folder = tempfile.mkdtemp(prefix="envcheck-held-")
    except OSError:
        return "/"
    try:
        _locks[folder] = os.open(folder, os.O_RDONLY)
        fcntl.flock(_locks[folder], fcntl.LOCK_SH)
    except OSError:
        pass  # a file system without locks
    return folder


def remove(scratch):
    """Remove a scratch directory, if there is one and it was made for this."""
    if scratch not in (None, "/"):
        import os
        import shutil

        shutil.rmtree(scratch, ignore_errors=True)
        if scratch in _locks:
            os.close(_locks.pop(scratch))
