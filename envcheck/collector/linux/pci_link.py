"""Where a PCIe device is, its link's speed and width, and its slot's, as /sys says."""

import os
import re

from ..facts import from_error, unavailable

ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
LINK_WIDTHS = (1, 2, 4, 8, 12, 16, 32)


def parse_speed(text):
    """GT/s of "16.0 GT/s PCIe" or "8 GT/s"."""
    match = re.match(r"(\d+(?:\.\d+)?) GT/s", text)
    return float(match.group(1)) if match else unavailable("not-supported", text)


def parse_width(text):
    """Lanes; a device that does not say, or does not answer, has 0, 63 or 255 of them."""
    if text.isdecimal() and int(text) in LINK_WIDTHS:
        return int(text)
    return unavailable("not-supported", text)


_SLOT = (
    ("max_link_gts", "max_link_speed", parse_speed),
    ("max_link_width", "max_link_width", parse_width),
)
# (fact, file in a device's folder, how its text is read)
LINK = (
    ("link_gts", "current_link_speed", parse_speed),
    ("link_width", "current_link_width", parse_width),
) + _SLOT
SLOT = tuple(("slot_" + fact, file, parse) for fact, file, parse in _SLOT)


def addresses(path):
    """Those on the way from the root port to the device whose folder is ``path``, its own last."""
    return [part for part in os.path.realpath(path).split(os.sep) if ADDRESS.match(part)]


def link_to(path):
    """The last part of where a link leads: a driver's name, a group's number; or the reason."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError as error:
        return from_error(error)
