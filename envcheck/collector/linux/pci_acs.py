"""Access Control Services: whether a PCIe port sends peer-to-peer requests up to the root."""

import os
import struct

from ..facts import from_error, unavailable

EXTENDED = 0x100  # where the extended capabilities begin
ACS = 0x000D
ACS_CONTROL = 6  # offset in the capability
REDIRECT = 0x04 | 0x08  # of requests, of completions
VISIBLE_TO_ALL = 64  # bytes of configuration space that an ordinary user may read


def acs_redirects(path):
    """Whether the port whose configuration space is the file ``path`` redirects; or the reason."""
    try:
        with open(path, "rb") as file:
            space = file.read(4096)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        return from_error(error)
    if len(space) <= VISIBLE_TO_ALL < size:
        return unavailable("no-permission", "%s: beyond %d bytes" % (path, VISIBLE_TO_ALL))
    return bool(acs_control(space) & REDIRECT)


def acs_control(space):
    """The ACS control register in a configuration space (bytes); 0 where there is no ACS."""
    offset = EXTENDED
    seen = set()
    while offset >= EXTENDED and offset not in seen and offset + 8 <= len(space):
        seen.add(offset)
        (header,) = struct.unpack_from("<I", space, offset)
        if header & 0xFFFF == ACS:
            return struct.unpack_from("<H", space, offset + ACS_CONTROL)[0]
        offset = header >> 20 & 0xFFC
    return 0
