"""A PCIe link's speed and width, as files in /sys tell them."""

import re

from ..facts import unavailable

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
