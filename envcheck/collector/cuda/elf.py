"""Reads from a shared library's file what its name does not tell for sure: its SONAME, and what it needs."""

import os
import struct
from collections import namedtuple

from ..files import open_regular

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 0, 1, 5, 14, 15, 29
_LIMIT = 1 << 20  # bytes of a header table or a dynamic section
_NAMES = 1000  # strings of a dynamic section

# kind: (wide, byte order, machine), which a process and all that it loads have in common. The others are
# lists of strings, as the dynamic section has them.
Elf = namedtuple("Elf", "kind soname needed rpath runpath")


def read(path):
    """The Elf of a file. Raises OSError, and ValueError for no ELF or a damaged one."""
    with open_regular(path) as file:
        try:
            return _read(file)
        except (struct.error, OverflowError):
            raise ValueError("a damaged ELF file")


def soname(path):
    """The SONAME of an ELF file, or None where it has none. Raises as ``read``."""
    found = read(path).soname
    return found[-1] if found else None


def needed(path):
    """The SONAMEs of the libraries that an ELF file is linked to. Raises as ``read``."""
    return read(path).needed


def layout(file):
    """(wide, byte order, machine, the header's fields) of an ELF file that is open. Raises ValueError."""
    ident = file.read(16)
    if (
        len(ident) < 16
        or ident[:4] != b"\x7fELF"
        or ident[4] not in (1, 2)
        or ident[5] not in (1, 2)
    ):
        raise ValueError("not an ELF file")
    wide = ident[4] == 2
    order = "<" if ident[5] == 1 else ">"
    header = struct.Struct(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"))
    fields = header.unpack(file.read(header.size))
    return wide, order, fields[1], fields


def _read(file):
    wide, order, machine, fields = layout(file)
    kind = (wide, order, machine)
    segments = _segments(file, wide, order, fields)
    dynamic = [segment for segment in segments if segment[0] == _PT_DYNAMIC]
    names, strings = [], None
    for tag, value in _pairs(file, dynamic[0], wide, order) if dynamic else ():
        if tag == _DT_STRTAB:
            strings = value
        elif tag in (_DT_NEEDED, _DT_SONAME, _DT_RPATH, _DT_RUNPATH) and len(names) < _NAMES:
            names.append((tag, value))
    found = {}
    if names and strings is not None:
        base = _in_file(segments, strings)
        for tag, name in names:
            text = _string(file, base + name)
            if text:
                found.setdefault(tag, []).append(text)
    return Elf(
        kind, *(found.get(tag, []) for tag in (_DT_SONAME, _DT_NEEDED, _DT_RPATH, _DT_RUNPATH))
    )


def _in_file(segments, wanted):
    """Where in the file an address lies."""
    for kind, offset, address, size in segments:
        if kind == _PT_LOAD and address <= wanted < address + size:
            return offset + wanted - address
    raise ValueError("a damaged ELF file")


def _string(file, place):
    _go(file, place)
    return os.fsdecode(file.read(4096).split(b"\0")[0])


def _segments(file, wide, order, fields):
    """[(type, file offset, address, size in the file)] of the program headers."""
    table, size, count = fields[4], fields[8], fields[9]
    entry = struct.Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII"))
    if size < entry.size or size * count > _LIMIT:
        raise ValueError("a damaged ELF file")
    _go(file, table)
    found = []
    for _ in range(count):
        part = entry.unpack(file.read(size)[: entry.size])
        if wide:
            kind, _flags, offset, address, _physical, length = part[:6]
        else:
            kind, offset, address, _physical, length = part[:5]
        found.append((kind, offset, address, length))
    return found


def _go(file, offset):
    if not 0 <= offset < 1 << 62:
        raise ValueError("a damaged ELF file")
    file.seek(offset)


def _pairs(file, segment, wide, order):
    _kind, offset, _address, size = segment
    pair = struct.Struct(order + ("qQ" if wide else "iI"))
    _go(file, offset)
    content = file.read(min(size, _LIMIT))
    for position in range(0, len(content) - pair.size + 1, pair.size):
        tag, value = pair.unpack_from(content, position)
        if tag == _DT_NULL:
            return
        yield tag, value
