"""Where the loader's search for a library ends, from files alone: nothing is loaded.

The order is that of ld.so(8): RPATH (of the file, then of the program) where the file has no RUNPATH,
LD_LIBRARY_PATH, RUNPATH, /etc/ld.so.cache, the system's directories.
"""

import os
import re

from .. import files
from . import elf

# The paths among the strings of an ld.so.cache, in whichever of its formats.
_CACHED = re.compile(rb"\0(/[^\0]{1,4096})(?=\0)")
_CACHE_LIMIT = 64 << 20  # bytes
_SYSTEM = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_TOKEN = re.compile(r"\$\{?(ORIGIN|LIB|PLATFORM)\}?")


def search_path(environ):
    """LD_LIBRARY_PATH's entries; an empty one stands for the working directory."""
    value = environ.get("LD_LIBRARY_PATH", "")
    return re.split("[:;]", value) if value else []


def cached(context):
    """The paths in the loader's cache; [] where there is none, as with musl."""
    try:
        found = _CACHED.findall(files.read(context.path("/etc/ld.so.cache"), _CACHE_LIMIT))
    except OSError:
        return []
    return [os.fsdecode(path) for path in found]


class Search(object):
    """Holds what the loader's searches have in common, and each file's headers once read."""

    def __init__(self, context, program):
        """program: the path of the interpreter's executable."""
        self._elves = {}
        self._program = self._rpath(os.path.realpath(program), "rpath")
        self._variable = search_path(context.environ)
        self._cached = {}
        for path in cached(context):
            self._cached.setdefault(os.path.basename(path), []).append(path)

    def read(self, path):
        """The file's Elf, or None where it is none or cannot be read."""
        if path not in self._elves:
            try:
                self._elves[path] = elf.read(path)
            except (OSError, ValueError):
                self._elves[path] = None
        return self._elves[path]

    def find(self, asker, soname):
        """(path, origin) of what a file would get for a SONAME; (None, None) where it is found nowhere."""
        own = self.read(asker)
        if own is None:
            return None, None
        for path, origin in self._candidates(asker, own, soname):
            other = self.read(path)
            if other is not None and other.kind == own.kind:
                return path, origin
        return None, None

    def others(self, stem):
        """Files of a library's other versions in LD_LIBRARY_PATH and the loader's cache."""
        start = stem + ".so."
        found = [
            path for name, paths in self._cached.items() if name.startswith(start) for path in paths
        ]
        for folder in self._variable:
            found += [
                os.path.join(folder, name) for name in files.names(folder) if name.startswith(start)
            ]
        return found

    def _candidates(self, asker, own, soname):
        if not own.runpath:
            for folder in self._rpath(asker, "rpath") + self._program:
                yield os.path.join(folder, soname), "rpath"
        for folder in self._variable:
            yield os.path.join(folder or ".", soname), "LD_LIBRARY_PATH"
        for folder in self._rpath(asker, "runpath"):
            yield os.path.join(folder, soname), "rpath"
        for path in self._cached.get(soname, ()):
            yield path, "ld.so.cache"
        for folder in _SYSTEM:
            yield os.path.join(folder, soname), "system"

    def _rpath(self, path, field):
        """The directories of a file's RPATH or RUNPATH. An RPATH beside a RUNPATH does not count."""
        own = self.read(path)
        if own is None or (field == "rpath" and own.runpath):
            return []
        values = {
            "ORIGIN": os.path.dirname(os.path.realpath(path)),
            "LIB": "lib64" if own.kind[0] else "lib",
            "PLATFORM": os.uname().machine,
        }
        entries = [entry for text in getattr(own, field) for entry in text.split(":") if entry]
        return [_TOKEN.sub(lambda found: values[found.group(1)], entry) for entry in entries]
