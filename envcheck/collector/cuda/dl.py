"""The dynamic loader through its own calls: dlopen with the flags we mean, and where a library lies.

ctypes.CDLL adds RTLD_NOW to every load and keeps dlopen's answers to itself; this does neither.
"""

import ctypes
import os
import re
from collections import namedtuple

_RTLD_DI_LINKMAP = 2

# One mapped file region: addresses, the path as the kernel knows it, and whether the file is still there.
Mapping = namedtuple("Mapping", "start end path deleted")

_MAPS_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) +\S+ +[0-9a-f]+ +\S+ +\d+ +(/.*)")
_OCTAL = re.compile(r"\\012")
_DELETED = " (deleted)"


class LoadError(Exception):
    """The loader's own words."""


class _LinkMap(ctypes.Structure):
    _fields_ = [
        ("l_addr", ctypes.c_void_p),
        ("l_name", ctypes.c_char_p),
        ("l_ld", ctypes.c_void_p),
        ("l_next", ctypes.c_void_p),
        ("l_prev", ctypes.c_void_p),
    ]


def _function(name, result, *arguments):
    for library in (None, "libdl.so.2"):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        function.restype = result
        function.argtypes = arguments
        return function
    raise ImportError("this process's C library has no %s" % name)


# Looked up once: looking one up is a dlopen and a dlsym itself, and those clear what dlerror would say.
_dlopen = _function("dlopen", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
_dlsym = _function("dlsym", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_dlerror = _function("dlerror", ctypes.c_char_p)
_dlinfo = _function("dlinfo", ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def load(name, mode=os.RTLD_LAZY | os.RTLD_LOCAL):
    """A handle for a path or a SONAME, searched for as for any dlopen. Raises LoadError."""
    handle = _dlopen(os.fsencode(name), mode)
    if not handle:
        raise LoadError(_words())
    return handle


def loaded(name):
    """A handle for what is loaded already, without loading anything; None where it is not."""
    try:
        return load(name, os.RTLD_LAZY | os.RTLD_NOLOAD)
    except LoadError:
        return None


def symbol(handle, name):
    """The address of a symbol in the library or in what it depends on; None where there is none."""
    return _dlsym(handle, name.encode()) or None


def where(handle):
    """(the name by which the loader found it, the Mapping of its dynamic section or None)."""
    link = ctypes.POINTER(_LinkMap)()
    if _dlinfo(handle, _RTLD_DI_LINKMAP, ctypes.byref(link)) != 0:
        raise LoadError(_words())
    return os.fsdecode(link.contents.l_name or b""), at(link.contents.l_ld or 0, mappings())


def at(address, regions):
    """The Mapping that an address lies in, or None."""
    for region in regions:
        if region.start <= address < region.end:
            return region
    return None


def mappings(path="/proc/self/maps"):
    """What this process has mapped from files: a list of Mappings."""
    with open(path, "rb") as maps:
        return parse_maps(os.fsdecode(maps.read()))


def parse_maps(text):
    """The Mappings in the text of a /proc/PID/maps; lines that are no file's are passed over."""
    found = []
    for line in text.split("\n"):
        match = _MAPS_LINE.match(line)
        if match is None:
            continue
        path = _OCTAL.sub("\n", match.group(3))
        deleted = path.endswith(_DELETED)
        if deleted:
            path = path[: -len(_DELETED)]
        found.append(Mapping(int(match.group(1), 16), int(match.group(2), 16), path, deleted))
    return found


def _words():
    return (_dlerror() or b"the loader gave no reason").decode("utf-8", "replace")
