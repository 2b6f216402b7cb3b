"""What a Horovod was built with, by its extension's file: nothing of it is imported."""

import fnmatch
import mmap
import os
import re

from .. import files
from ..cuda import elf
from ..facts import from_error, unavailable
from ..files import open_regular

_LIMIT = 512 << 20  # bytes of an extension; with NCCL in it, it has about 200 MB
# Names of calls that a build without them does not hold.
_CALLS = (
    ("cuda", b"cudaMemcpyAsync"),
    ("gloo", b"4gloo9transport"),
    ("mpi", b"MPI_Allreduce"),
    ("nccl", b"ncclAllReduce"),
)
_BUILT_IN = re.compile(rb"NCCL version (\d{1,3}\.\d{1,3}\.\d{1,3})")


def extension(framework, folder, pattern):
    """A HorovodExtension's facts."""
    found = {"framework": framework, "present": False}
    names = fnmatch.filter(files.names(folder), pattern)
    if not names:
        return found
    found["present"] = True
    path = os.path.join(folder, names[0])
    try:
        found["operations"], found["nccl"] = _inside(path)
    except (OSError, ValueError) as error:
        found["operations"] = found["nccl"] = from_error(error)
    return found


def _inside(path):
    """(operations, NCCL's library or version) of an extension's file. Raises OSError, ValueError."""
    library = next((name for name in elf.needed(path) if name.startswith("libnccl")), None)
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > _LIMIT:
            raise ValueError("larger than %d bytes" % _LIMIT)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            operations = [
                name
                for name, call in _CALLS
                if (library and name == "nccl") or content.find(call) >= 0
            ]
            match = _BUILT_IN.search(content) if "nccl" in operations else None
            built_in = match.group(1).decode("ascii") if match else None  # before it is closed
    return operations, library or built_in or unavailable("absent", "not linked to it")
