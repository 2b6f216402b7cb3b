"""A wheel's METADATA out of the archive, by a look at its directory that makes no object of each entry.

A wheel of TensorFlow has 13,000 entries, and zipfile takes longer to list them than the network to send them;
every resolution waits for it. What is out of the ordinary is left to zipfile.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple, cast

# The format: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.7 (local header), 4.3.12 (directory), 4.3.16 (end).
_END = struct.Struct("<4s4H2LH")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_NOT_HERE = 0xFFFFFFFF  # the value stands in a zip64 record
_ENCRYPTED = 0x1

Archive = IO[bytes] | io.RawIOBase  # that can seek

_NAME = b".dist-info/METADATA"


class _Entry(NamedTuple):
    name: str
    method: int
    crc: int
    packed: int  # bytes
    size: int  # bytes
    at: int  # of its local header


class NoMetadata(Exception):
    """The archive holds none, or several, and none of its own."""


class TooLarge(Exception):
    pass


def read(wheel: Archive, distribution: str, largest: int) -> bytes:
    """METADATA; its checksum is looked at.

    distribution: "name-version", lower case, which is asked where several are there: one of a vendored
    distribution beside its own. Raises NoMetadata, TooLarge where it has more than ``largest`` bytes, and
    what zipfile raises for what is no archive.
    """
    directory = _directory(wheel)
    if directory is None:
        return _by_zipfile(wheel, distribution, largest)
    entry = _own(list(_entries(directory)), distribution)
    if entry.size > largest:
        raise TooLarge
    data = _unpacked(wheel, entry)
    return _by_zipfile(wheel, distribution, largest) if data is None else data


def _directory(wheel: Archive) -> bytes | None:
    """The central directory; None where it does not lie as it does in every wheel: right before the end's
    record, which has no comment."""
    size = wheel.seek(0, 2)
    if size < _END.size:
        return None
    wheel.seek(size - _END.size)
    end = _END.unpack(_exactly(wheel, _END.size))
    mark, disk, first_disk, _, count, length, at, comment = end
    usual = mark == b"PK\5\6" and (disk, first_disk, comment) == (0, 0, 0) and count != 0xFFFF
    if not usual or at + length + _END.size != size:
        return None
    wheel.seek(at)
    return _exactly(wheel, length)


def _entries(directory: bytes) -> Iterator[_Entry]:
    """Those that are some distribution's METADATA. Raises BadZipFile."""
    at = 0
    while at < len(directory):
        try:
            found = _ENTRY.unpack_from(directory, at)
        except struct.error:
            raise zipfile.BadZipFile("its directory is cut off") from None
        if found[0] != b"PK\1\2":
            raise zipfile.BadZipFile("its directory is damaged")
        begin = at + _ENTRY.size
        at = begin + found[10] + found[11] + found[12]
        if directory.endswith(_NAME, begin, begin + found[10]):
            name = directory[begin : begin + found[10]].decode("utf-8", "replace")
            yield _Entry(name, found[4], found[7], found[8], found[9], found[16])


def _own(entries: list[_Entry], distribution: str) -> _Entry:
    found = [entry for entry in entries if entry.name.count("/") == 1]
    if len(found) > 1:
        found = [entry for entry in found if entry.name.lower().startswith(distribution)]
    if len(found) != 1:
        raise NoMetadata
    return found[0]


def _unpacked(wheel: Archive, entry: _Entry) -> bytes | None:
    """None for what zipfile knows better."""
    if _NOT_HERE in (entry.packed, entry.size, entry.at):
        return None
    if entry.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return None
    wheel.seek(entry.at)
    local = _LOCAL.unpack(_exactly(wheel, _LOCAL.size))
    if local[0] != b"PK\3\4" or local[2] & _ENCRYPTED:
        return None
    wheel.seek(entry.at + _LOCAL.size + local[9] + local[10])
    data = _exactly(wheel, entry.packed)
    if entry.method == zipfile.ZIP_DEFLATED:
        data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, entry.size + 1)
    if zlib.crc32(data) != entry.crc:
        raise zipfile.BadZipFile("the checksum of its METADATA is wrong")
    return data


def _exactly(wheel: Archive, length: int) -> bytes:
    pieces = []
    while length > 0:  # a remote file gives what it has read already, and then the rest
        pieces.append(wheel.read(length))
        if not pieces[-1]:
            raise zipfile.BadZipFile("it is cut off")
        length -= len(pieces[-1])
    return b"".join(pieces)


def _by_zipfile(wheel: Archive, distribution: str, largest: int) -> bytes:
    with zipfile.ZipFile(cast("IO[bytes]", wheel)) as archive:
        found = [
            _Entry(one.filename, one.compress_type, one.CRC, one.compress_size, one.file_size, 0)
            for one in archive.infolist()
            if one.filename.encode().endswith(_NAME)
        ]
        entry = _own(found, distribution)
        if entry.size > largest:
            raise TooLarge
        return archive.read(entry.name)
