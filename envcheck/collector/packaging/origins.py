"""Who put a loaded library where it lies: a wheel, a variable, ldconfig, conda, the system, an RPATH."""

import os
import re
from collections import namedtuple

from .. import files
from ..cuda import libraries, loader_search
from . import distributions

_SYSTEM = re.compile(
    r"/(?:usr/)?lib(?:32|64|x32)?(?:/[\w-]+-linux-[\w]+)?(?:/glibc-hwcaps/[\w-]+)?\Z"
)

# A library's file that an installed distribution's RECORD names.
WheelLibrary = namedtuple("WheelLibrary", "path library distribution")


def wheel_libraries(sys_path):
    """The WheelLibraries of the relevant distributions on sys.path, in RECORD's order."""
    found = []
    seen = set()
    for distribution in distributions.find(sys_path):
        try:
            rows = list(distributions.recorded(distribution, about=".so"))
        except (OSError, ValueError):
            continue  # the packages probe says so
        for recorded, _hash in rows:
            library = libraries.known(os.path.basename(recorded))
            path = os.path.normpath(os.path.join(distribution.location, recorded))
            if library is not None and path not in seen:
                seen.add(path)
                found.append(WheelLibrary(path, library, distribution))
    return found


class Origins(object):
    """Holds what is needed to tell where libraries come from; ``of`` tells."""

    def __init__(self, context, wheels, prefixes):
        """prefixes: the interpreter's sys.prefix and sys.base_prefix."""
        self._wheels = {_real(wheel.path): wheel.distribution for wheel in wheels}
        entries = [entry for entry in loader_search.search_path(context.environ) if entry]
        self._search = [_real(entry) for entry in entries]
        # An entry may hold links alone: to the system's files, of which the kernel tells.
        self._linked = {
            _real(os.path.join(entry, name))
            for entry in entries
            for name in files.names(entry)
            if libraries.known(name)
        }
        preloaded = re.split(r"[\s:]+", context.environ.get("LD_PRELOAD", ""))
        self._preloaded = {_real(path) for path in preloaded if "/" in path}
        self._conda = [
            _real(prefix) + "/"
            for prefix in prefixes
            if os.path.isdir(os.path.join(prefix, "conda-meta"))
        ]
        self._cached = _cached(context)

    def of(self, path, name=""):
        """{"origin"} and for a wheel {"distribution", "distribution_version"} too.

        path: as the kernel maps it. name: as the loader found it, where that is known.
        """
        real = _real(path)
        distribution = self._wheels.get(real)
        if real in self._preloaded and distribution is None:
            return {"origin": "LD_PRELOAD"}
        if distribution is not None:
            return {
                "origin": "wheel",
                "distribution": distribution.name,
                "distribution_version": distribution.version,
            }
        return {"origin": self._other(real, {os.path.dirname(real), _real(os.path.dirname(name))})}

    def _other(self, real, directories):
        if real in self._linked or any(
            _below(directory, entry) for entry in self._search for directory in directories
        ):
            return "LD_LIBRARY_PATH"
        if real in self._cached:
            return "ld.so.cache"
        if any(real.startswith(prefix) for prefix in self._conda):
            return "conda"
        return "system" if _SYSTEM.match(os.path.dirname(real)) else "rpath"


def _below(directory, entry):
    # The loader also looks into glibc-hwcaps and the like below an entry.
    rest = directory[len(entry) :] if directory.startswith(entry) else None
    return rest == "" or (
        rest is not None and rest.startswith(("/glibc-hwcaps/", "/tls", "/x86_64"))
    )


def _cached(context):
    paths = loader_search.cached(context)
    return frozenset(_real(path) for path in paths if libraries.known(os.path.basename(path)))


def _real(path):
    return os.path.realpath(path) if path else ""
