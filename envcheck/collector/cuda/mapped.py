"""Which file the loader mapped for a library, in the process that asks."""

import os

MAPS = "/proc/self/maps"


def mapped_library(context, stem):
    """The path of the first mapped file whose name begins with ``stem``, as the kernel knows it.

    Raises OSError where the maps cannot be read, FileNotFoundError (an OSError) where none is mapped.
    """
    for line in context.read(MAPS, 16 << 20).splitlines():
        path = line.partition("/")
        name = os.path.basename(path[2])
        if path[1] and name.startswith(stem):
            deleted = " (deleted)"
            found = "/" + path[2]
            return found[: -len(deleted)] if found.endswith(deleted) else found
    raise FileNotFoundError(2, "no file named %s* is mapped" % stem)
