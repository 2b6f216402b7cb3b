"""Copies between pinned host memory and a GPU, each way."""

import contextlib

from .running import records
from .shared.transfers import speed
from .shared.transfers.device import TransferDevice
from .shared.transfers.host_memory import run_near
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
    watch = speed.watch(params, device)
    with device.areas(size, size, RESULT.size) as (first, second, result):
        _pinned(device, size, (first, second, result), watch, tell)


def _pinned(device, size, areas, watch, tell):
    first, second, result = areas
    with contextlib.ExitStack() as stack:
        pinned = []
        with tell.trial("round trip") as trial:
            pinned.append(stack.enter_context(device.pinned(size)))
            device.write(first, size, _SEED, 0)
            device.fill(second, 0, size)
            device.to_host(pinned[0], first, size)
            device.to_device(second, pinned[0], size)
            trial["MiB"] = size >> 20
            trial.update(copied(device, second, size, _SEED, result))
        ways = (
            ("pinned to the GPU", lambda: device.to_device(first, pinned[0], size)),
            ("pinned from the GPU", lambda: device.to_host(pinned[0], first, size)),
        )
        for name, copy in ways if pinned else ():  # else the round trip says why
            with tell.trial(name) as trial:
                speed.warm_up(device, copy)
                trial.update(speed.measured(device, copy, size, watch))
                trial.update(watch.taken("pcie_gen", "pcie_width"))
