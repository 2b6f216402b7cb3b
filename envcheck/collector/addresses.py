"""PCI addresses, which every source writes in a way of its own."""

import re

_ADDRESS = re.compile(
    r"(?:([0-9A-Fa-f]{1,8}):)?([0-9A-Fa-f]{1,2}):([0-9A-Fa-f]{1,2})(?:\.([0-7]))?\Z"
)


def pci_address(text):
    """A PCI address as /sys writes it: "00000000:00:1E.0" is "0000:00:1e.0".

    The domain has four digits where they suffice, else as many as it needs. Raises ValueError for what
    is no address.
    """
    match = _ADDRESS.match(text.strip())
    if match is None:
        raise ValueError("not a PCI address: %r" % text[:80])
    domain, bus, device, function = (int(part, 16) if part else 0 for part in match.groups())
    return "%04x:%02x:%02x.%d" % (domain, bus, device, function)
