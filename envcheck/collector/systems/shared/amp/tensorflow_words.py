"""Which environment variables of AMP this TensorFlow knows: whether its libraries and sources name them."""

import mmap
import os
import struct
import sys

VARIABLES = (
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
    "TF_ENABLE_AUTO_MIXED_PRECISION_LOSS_SCALING",
)
_BEGIN = b"AUTO_MIXED_PRECISION"
_PASS = b"TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE"  # named where the rewrite itself is
_NO_EFFECT = b"TF_ENABLE_AUTO_MIXED_PRECISION has no effect"
_SOURCE = "tensorflow.python.training.optimizer"  # NVIDIA's reads some of them here
_SOURCE_LIMIT = 4 << 20
_SECTION_LIMIT = 1 << 12  # sections
_LIBRARIES = 60
_LONGEST = 300  # bytes of a string around what is looked for

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NO_BITS = 8  # SHT_NOBITS


def look(folders):
    """(names that are known, whether the rewrite was seen, whether a name is said to have no effect).

    folders: of TensorFlow's packages; the libraries of them that this process has mapped are read.
    """
    found = set()
    for path in _mapped(folders):
        try:
            found.update(strings(path))
        except (OSError, ValueError, struct.error):
            continue
    # A linker may let a string be the end of a longer one.
    known = {name for name in VARIABLES if any(one.endswith(name.encode("ascii")) for one in found)}
    known.update(_in_source())
    seen = any(word.startswith(_PASS) for word in found)
    refused = any(word.startswith(_NO_EFFECT) for word in found)
    return [name for name in VARIABLES if name in known], seen, refused


def _mapped(folders):
    roots = tuple(os.path.realpath(folder) + os.sep for folder in folders)
    paths = []
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                path = line.rstrip("\n").partition("/")[2]
                if path and ("/" + path).startswith(roots) and "/" + path not in paths:
                    paths.append("/" + path)
    except OSError:
        return []
    return [path for path in paths if ".so" in os.path.basename(path)][:_LIBRARIES]


def strings(path):
    """The C strings of a library's read-only data that name AUTO_MIXED_PRECISION."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = set()
        for begin, end in _read_only(content):
            at = content.find(_BEGIN, begin, end)
            while at >= 0:
                before = max(begin, at - _LONGEST)
                first = max(before, content.rfind(b"\0", before, at) + 1)
                last = content.find(b"\0", at, min(end, at + _LONGEST))
                if last > 0:
                    found.add(content[first:last])
                at = content.find(_BEGIN, at + len(_BEGIN), end)
        return found


def _read_only(content):
    """(begin, end) of each section of constants; raises ValueError, struct.error where it is no such file."""
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit ELF file")
    header = _HEADER.unpack_from(content, 0)
    offset, size, number, names = header[6], header[11], header[12], header[13]
    if size != _SECTION.size or number > _SECTION_LIMIT or names >= number:
        raise ValueError("its sections cannot be read")
    sections = [_SECTION.unpack_from(content, offset + place * size) for place in range(number)]
    table = sections[names][4]
    for section in sections:
        at = table + section[0]
        if section[1] != _NO_BITS and content[at : at + 7] == b".rodata":
            yield section[4], section[4] + section[5]


def _in_source():
    module = sys.modules.get(_SOURCE)
    path = getattr(module, "__file__", None)
    if not isinstance(path, str) or not path.endswith(".py"):
        return set()
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_SOURCE_LIMIT)
    except OSError:
        return set()
    return {name for name in VARIABLES if "'%s'" % name in text or '"%s"' % name in text}


def are_set(environ):
    """["NAME=value"] of those that are set, and of the rewrite's own switches."""
    names = [name for name in VARIABLES if name in environ]
    names += sorted(name for name in environ if name.startswith(_PASS.decode("ascii") + "_"))
    return ["%s=%s" % (name, environ[name][:60]) for name in names]
