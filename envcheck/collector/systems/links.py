"""Copies between host and GPU: pinned and pageable memory, each way and both."""

import contextlib
import ctypes

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
        _pageable(device, size, first, tell)


def _pinned(device, size, areas, watch, tell):
    first, second, result = areas
    with contextlib.ExitStack() as stack:
        pinned = []
        with tell.trial("round trip") as trial:
            pinned += [stack.enter_context(device.pinned(size)) for _ in range(2)]
            there = pinned[0]
            device.write(first, size, _SEED, 0)
            device.fill(second, 0, size)
            device.to_host(there, first, size)
            device.to_device(second, there, size)
            trial["MiB"] = size >> 20
            trial.update(copied(device, second, size, _SEED, result))
        if not pinned:
            return  # and the round trip says why
        there, back = pinned
        ways = (
            ("pinned to the GPU", lambda: device.to_device(first, there, size)),
            ("pinned from the GPU", lambda: device.to_host(there, first, size)),
        )
        for name, copy in ways:
            with tell.trial(name) as trial:
                speed.warm_up(device, copy)
                trial.update(speed.measured(device, copy, size, watch))
                trial.update(watch.taken("pcie_gen", "pcie_width"))
        with tell.trial("pinned both ways") as trial:
            rates = speed.both_ways(
                device,
                lambda stream: device.to_device(first, there, size, stream),
                lambda stream: device.to_host(back, second, size, stream),
                size,
            )
            trial.update(rates)


def _pageable(device, size, area, tell):
    memory = ctypes.create_string_buffer(size)
    ctypes.memset(memory, 1, size)  # so that it is there
    there = ctypes.addressof(memory)
    for name, copy in (
        ("pageable to the GPU", lambda: device.to_device(area, there, size)),
        ("pageable from the GPU", lambda: device.to_host(there, area, size)),
    ):
        with tell.trial(name) as trial:
            trial.update(speed.measured(device, copy, size))
