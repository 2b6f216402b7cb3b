"""Copies between pinned host memory and a GPU, each way."""

import contextlib
import os
from functools import partial

from .. import files
from .running import records
from .shared.transfers import speed
from .shared.transfers.device import TransferDevice
from .shared.transfers.pattern import area_size, copied
from .shared.transfers.pattern_ptx import RESULT

SYSTEM = "links"
DOCUMENT = "machine"
GPUS = 1
EACH_GPU = True
ALONE = True
DEADLINE = 30.0

_SEED = 12345


def run(_framework, params, tell):
    device = TransferDevice()
    facts = device.evidence()
    if facts["integrated"]:
        raise records.NotApplicable("the GPU shares the host's memory: no link is between them")
    size = area_size(params)
    with tell.trial("device") as trial:
        trial.update(facts)
        trial["runs_near"] = run_near(device.address)
    watch = speed.LinkWatch(params, device)
    with contextlib.ExitStack() as stack:
        first, second, result = stack.enter_context(device.areas(size, size, RESULT.size))
        pinned = None
        with tell.trial("round trip") as trial:
            pinned = stack.enter_context(device.pinned(size))
            device.write(first, size, _SEED, 0)
            device.fill(second, 0, size)
            device.to_host(pinned, first, size)
            device.to_device(second, pinned, size)
            trial["MiB"] = size >> 20
            trial.update(copied(device, second, size, _SEED, result))
        ways = (
            ("pinned to the GPU", partial(device.to_device, first, pinned, size)),
            ("pinned from the GPU", partial(device.to_host, pinned, first, size)),
        )
        for name, copy in ways if pinned else ():  # else the round trip says why
            with tell.trial(name) as trial:
                speed.warm_up(device, copy)
                trial.update(speed.measured(device, copy, size, watch))
                trial.update(watch.taken("pcie_gen", "pcie_width"))


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
