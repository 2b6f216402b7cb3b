"""What the system's own pci.ids calls NVIDIA's devices."""

import re

FILES = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")
LIMIT = 16 << 20


def device_names(context, device_ids):
    """({device id: name}, file) from the first pci.ids that there is; ({}, "") without one.

    device_ids: four hexadecimal digits each, lower case.
    """
    for path in FILES:
        try:
            text = context.read(path, LIMIT)
        except OSError:
            continue
        return parse_names(text, "10de", device_ids), path
    return {}, ""


def parse_names(text, vendor, device_ids):
    """{device id: name} of one vendor's devices in a pci.ids text."""
    start = re.search(r"^%s\s" % vendor, text, re.M)
    if not start:
        return {}
    block = text[start.end() :]
    stop = re.search(r"^[0-9a-fA-F]", block, re.M)
    block = block[: stop.start()] if stop else block
    names = {}
    for match in re.finditer(r"^\t([0-9a-f]{4})[ \t]+(\S.*)$", block, re.M):
        if match.group(1) in device_ids:
            names[match.group(1)] = match.group(2).strip()
    return names
