"""A kernel module's own version and licence, from its .modinfo section."""

import re
import time

from ..facts import from_error, unavailable

CHUNK = 1 << 20
OVERLAP = 4096
FLAVOURS = {"NVIDIA": "proprietary", "Dual MIT/GPL": "open"}
VERSION = re.compile(rb"\0version=([0-9][0-9A-Za-z.\-]*)\0")
LICENCE = re.compile(rb"\0license=([^\0]{1,80})\0")


def read_modinfo(path, deadline):
    """{"version", "flavour"} of a module file, each a value or an unavailable fact.

    deadline: a time.monotonic() after which no module is read any further.
    """
    try:
        stream = _decompressed(path)
        if stream is None:
            return _both(unavailable("not-supported", "compressed: %s" % path.rpartition(".")[2]))
        with stream:
            return scan(stream, deadline)
    except Exception as error:  # foreign bytes: whatever a damaged file does to a decompressor
        return _both(from_error(error))


def scan(stream, deadline):
    """Version and flavour by reading a module from its start until both were seen."""
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
        if path.endswith(".ko"):
            return open(path, "rb")
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
