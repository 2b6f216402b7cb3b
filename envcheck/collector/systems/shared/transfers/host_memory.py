"""Where host memory that is copied should lie: near the GPU."""

import os

from .... import files


def run_near(pci_address, root=""):
    """Move this thread to the processors near a device, as far as it may. Whether it could."""
    try:
        path = "%s/sys/bus/pci/devices/%s/local_cpulist" % (root, pci_address)
        near = processors_of(files.read(path, 4096).decode("ascii", "replace"))
        near &= os.sched_getaffinity(0)
        if near:
            os.sched_setaffinity(0, near)
        return bool(near)
    except (OSError, ValueError):
        return False


def processors_of(text):
    """The set that "0-3,8" stands for. Raises ValueError."""
    found = set()
    for part in filter(None, text.strip().split(",")):
        first, _dash, last = part.partition("-")
        found.update(range(int(first), min(int(last or first), 1 << 16) + 1))
    return found
