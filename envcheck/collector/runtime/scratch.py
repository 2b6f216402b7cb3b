"""An empty directory to work in, made for one collection."""


def make():
    """A new empty directory; the root where nothing can be written, and so nothing needs to be."""
    import tempfile

    try:
        return tempfile.mkdtemp(prefix="envcheck-")
    except OSError:
        return "/"


def remove(scratch):
    """Remove a scratch directory, if there is one and it was made for this."""
    if scratch not in (None, "/"):
        import shutil

        shutil.rmtree(scratch, ignore_errors=True)
