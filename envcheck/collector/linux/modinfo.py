"""A kernel module's own version and licence, from its .modinfo section."""

import re
import struct
import time

from ..facts import from_error, unavailable

CHUNK = 1 << 20
SECTION_LIMIT = 1 << 20  # bytes of .modinfo
OVERLAP = 4096
FLAVOURS = {"NVIDIA": "proprietary", "Dual MIT/GPL": "open"}
VERSION = re.compile(rb"\0version=([0-9][0-9A-Za-z.\-]*)\0")
LICENCE = re.compile(rb"\0license=([^\0]{1,80})\0")


def read_modinfo(path, deadline):
    """{"version", "flavour"} of a module file, each a value or an unavailable fact.

    deadline: a time.monotonic() after which no compressed module is read any further.
    """
    try:
        if path.endswith(".ko"):
            with open(path, "rb") as file:
                return _facts(b"\0" + modinfo_section(file) + b"\0")
        stream = _decompressed(path)
        if stream is None:
            return _both(unavailable("not-supported", "compressed: %s" % path.rpartition(".")[2]))
        with stream:
            return scan(stream, deadline)
    except Exception as error:  # foreign bytes: whatever a damaged file does to a decompressor
        return _both(from_error(error))


def modinfo_section(file):
    """The bytes of an ELF file's .modinfo section. Raises ValueError where there is none."""
    head = file.read(64)
    if len(head) < 64 or head[:4] != b"\x7fELF" or head[4] not in (1, 2):
        raise ValueError("not an ELF file")
    order = "<" if head[5] == 1 else ">"
    wide = head[4] == 2
    (table,) = struct.unpack_from(order + ("Q" if wide else "I"), head, 40 if wide else 32)
    size, count, names = struct.unpack_from(order + "HHH", head, 58 if wide else 46)
    if size < (64 if wide else 40) or names >= count:
        raise ValueError("no section table")
    headers = _read(file, table, size * count)
    if len(headers) < size * count:
        raise ValueError("the section table is cut off")
    sections = [_section(headers, index * size, order, wide) for index in range(count)]
    strings = _read(file, sections[names][1], sections[names][2])
    for name, offset, length in sections:
        if strings[name:].partition(b"\0")[0] == b".modinfo":
            return _read(file, offset, length)
    raise ValueError("no .modinfo section")


def _section(headers, at, order, wide):
    """(offset of its name, offset in the file, length) of one section header."""
    (name,) = struct.unpack_from(order + "I", headers, at)
    if wide:
        offset, length = struct.unpack_from(order + "QQ", headers, at + 24)
    else:
        offset, length = struct.unpack_from(order + "II", headers, at + 16)
    return name, offset, length


def _read(file, offset, length):
    file.seek(offset)
    return file.read(min(length, SECTION_LIMIT))


def scan(stream, deadline):
    """Version and flavour by reading a decompressed module from its start until both were seen."""
    window = b""
    found = {}
    while time.monotonic() < deadline:
        chunk = stream.read(CHUNK)
        if not chunk:
            return dict(_facts(b""), **found)
        window = window[-OVERLAP:] + chunk
        found.update(
            (name, value) for name, value in _facts(window).items() if isinstance(value, str)
        )
        if len(found) == 2:
            return found
    return dict(_both(unavailable("timeout", "compressed")), **found)


def _facts(modinfo):
    version, licence = VERSION.search(modinfo), LICENCE.search(modinfo)
    missing = unavailable("absent", "not in its modinfo")
    text = licence.group(1).decode("utf-8", "replace") if licence else ""
    flavour = FLAVOURS.get(text)
    if licence and flavour is None:
        flavour = unavailable("error", "licence %s" % text)
    return {
        "version": version.group(1).decode("ascii") if version else missing,
        "flavour": flavour or missing,
    }


def _both(fact):
    return {"version": fact, "flavour": fact}


def _decompressed(path):
    """A stream of the module's own bytes, or None where this interpreter cannot decompress it."""
    try:
        if path.endswith(".gz"):
            import gzip

            return gzip.open(path, "rb")
        if path.endswith(".xz"):
            import lzma

            return lzma.open(path, "rb")
        if path.endswith(".zst"):
            from compression import zstd  # Python 3.14 and later

            return zstd.open(path, "rb")
    except ImportError:
        pass
    return None
