"""What a library's sections hold: symbols that it lacks or defines, and names of libraries in its text.

Only what is asked for is read: a section's pages, or through its hash table those of one symbol.
"""

import mmap
import os
import struct
from collections import namedtuple

from ..files import open_regular
from . import elf

_DYNSYM, _STRTAB, _GNU_HASH = 11, 3, 0x6FFFFFF6
_TABLE = 1 << 20  # bytes of the section headers
_SYMBOLS = 64 << 20  # bytes of a symbol table
_CHAIN = 100000  # symbols in one bucket
_GLOBAL = 1

_Section = namedtuple("_Section", "name kind offset size link")


class Content(object):
    """An ELF file that is open, by its sections. Raises OSError, and ValueError for no ELF."""

    def __init__(self, path):
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ValueError("an empty file")
            try:
                self._wide, self._order, _machine, fields = elf.layout(file)
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                self._sections = self._read_sections(fields)
            except (struct.error, OverflowError):
                raise ValueError("a damaged ELF file")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._data.close()

    def constants(self, limit):
        """The bytes of .rodata, at most ``limit`` of them; b"" where it has none or it is larger."""
        for one in self._sections:
            if one.name == b".rodata" and one.size <= limit:
                return self._data[one.offset : one.offset + one.size]
        return b""

    def undefined(self, pattern, limit):
        """The first ``limit`` names that match, of symbols that another library has to define."""
        found = []
        try:
            for name in self._lacked():
                if pattern.match(name):
                    found.append(name)
                    if len(found) >= limit:
                        break
        except (struct.error, OverflowError):
            raise ValueError("a damaged ELF file")
        return found

    def _lacked(self):
        table = self._of_kind(_DYNSYM)
        if table is None or table.size > _SYMBOLS:
            return
        entry = struct.Struct(self._order + ("IBBHQQ" if self._wide else "IIIBBH"))
        strings = self._sections[table.link].offset if table.link < len(self._sections) else 0
        for place in range(table.offset, table.offset + table.size - entry.size + 1, entry.size):
            values = entry.unpack_from(self._data, place)
            name, info, home = (values[0],) + (values[1:4:2] if self._wide else values[3:6:2])
            if home == 0 and info >> 4 == _GLOBAL:
                yield self._string(strings + name)

    def lacking(self, names):
        """Those of the names that it does not define; none where its symbols cannot be looked up."""
        table, hashes = self._of_kind(_DYNSYM), self._of_kind(_GNU_HASH)
        if table is None or hashes is None or table.link >= len(self._sections):
            return []
        try:
            return [name for name in names if not self._defines(name, table, hashes)]
        except (struct.error, OverflowError):
            return []

    def _defines(self, name, table, hashes):
        buckets, first, blooms, _shift = self._words(hashes.offset, 4)
        if not buckets:
            return False
        number = 5381
        for character in bytearray(name):
            number = (number * 33 + character) & 0xFFFFFFFF
        start = hashes.offset + 16 + blooms * (8 if self._wide else 4)
        (index,) = self._words(start + 4 * (number % buckets), 1)
        strings = self._sections[table.link].offset
        size = 24 if self._wide else 16
        for position in range(index, index + _CHAIN if index >= first else index):
            (found,) = self._words(start + 4 * (buckets + position - first), 1)
            if found | 1 == number | 1:
                (offset,) = self._words(table.offset + size * position, 1)
                if self._string(strings + offset) == name:
                    return True
            if found & 1:
                break
        return False

    def _words(self, place, count):
        return struct.unpack_from(self._order + "%dI" % count, self._data, place)

    def _string(self, place):
        end = self._data.find(b"\0", place, place + 8192)
        return self._data[place:end] if end >= 0 else b""

    def _of_kind(self, kind):
        return next((one for one in self._sections if one.kind == kind), None)

    def _read_sections(self, fields):
        table, size, count, names = fields[5], fields[10], fields[11], fields[12]
        entry = struct.Struct(self._order + ("IIQQQQIIQQ" if self._wide else "IIIIIIIIII"))
        if not table or size < entry.size or size * count > _TABLE:
            return []
        rows = [entry.unpack_from(self._data, table + size * position) for position in range(count)]
        base = rows[names][4] if names < len(rows) else 0
        return [
            _Section(self._string(base + row[0]), row[1], row[4], row[5], row[6]) for row in rows
        ]
