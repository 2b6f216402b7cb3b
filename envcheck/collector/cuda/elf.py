"""Reads from a shared library's file what its name does not tell for sure: its SONAME, and what it needs."""

import os
import struct

from ..files import open_regular

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_SONAME = 0, 1, 5, 14
_LIMIT = 1 << 20  # bytes of a header table or a dynamic section


def soname(path):
    """The SONAME of an ELF file, or None where it has none. Raises OSError, and ValueError for no ELF."""
    found = _strings(path, _DT_SONAME)
    return found[-1] if found else None


def needed(path):
    """The SONAMEs of the libraries that an ELF file is linked to. Raises as ``soname``."""
    return _strings(path, _DT_NEEDED)


def _strings(path, tag):
    with open_regular(path) as file:
        try:
            return _dynamic_strings(file, tag)
        except struct.error:
            raise ValueError("a damaged ELF file")


def _dynamic_strings(file, wanted):
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
    segments = _segments(file, wide, order)
    dynamic = [segment for segment in segments if segment[0] == _PT_DYNAMIC]
    if not dynamic:
        return []
    names, strings = [], None
    for tag, value in _pairs(file, dynamic[0], wide, order):
        if tag == wanted:
            names.append(value)
        elif tag == _DT_STRTAB:
            strings = value
    if not names or strings is None:
        return []
    for kind, offset, address, size in segments:
        if kind == _PT_LOAD and address <= strings < address + size:
            return [
                found
                for found in (_string(file, offset + strings - address + name) for name in names)
                if found
            ]
    raise ValueError("a damaged ELF file")


def _string(file, place):
    _go(file, place)
    return os.fsdecode(file.read(256).split(b"\0")[0])


def _segments(file, wide, order):
    """[(type, file offset, address, size in the file)] of the program headers."""
    header = struct.Struct(order + ("HHIQQQIHHH" if wide else "HHIIIIIHHH"))
    fields = header.unpack(file.read(header.size))
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
