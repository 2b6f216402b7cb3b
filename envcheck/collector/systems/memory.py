"""The GPU's own memory: a pattern that must come back as it was written, and its bandwidth."""

import time
from functools import partial

from .shared.transfers import pattern, speed
from .shared.transfers.device import TransferDevice
from .shared.transfers.pattern_ptx import MASK, RESULT, STEP

SYSTEM = "memory"
DOCUMENT = "machine"
GPUS = 1
EACH_GPU = True
ALONE = True
DEADLINE = 30.0

_LITTLE = 64  # MiB, where nobody knows how much is free
_MOST_SPEED = 512 << 20  # bytes of an area that is timed


def run(_framework, params, tell):
    device = TransferDevice()
    size = (params.get("memory_mib") or _LITTLE) << 20
    until = time.monotonic() + params["seconds"] / 2.0
    with tell.trial("device") as trial:
        trial.update(device.evidence())
        trial["free_MiB"] = device.memory_free() >> 20
    for name, mask in (("pattern", 0), ("inverted pattern", MASK)):
        with tell.trial(name) as trial, device.areas(RESULT.size) as (result,):
            with pattern.chunks(device, size) as areas:
                trial.update(pattern.write_and_check(device, areas, mask, result, until))
    watch = speed.LinkWatch(params, device)
    area = max(STEP, min(_MOST_SPEED, size // 3 // STEP * STEP))
    with tell.trial("copy") as trial, device.areas(area, area) as (to, from_):
        copy = partial(device.within, to, from_, area)
        speed.warm_up(device, copy)
        trial.update(speed.measured(device, copy, 2 * area, watch))
        trial.update(watch.taken("sm_mhz", "memory_mhz"))
    with tell.trial("read") as trial, device.areas(area, RESULT.size) as places:
        device.fill(places[0], 0, area)
        read = partial(device.start, "read", area, places, 16)
        trial.update(speed.measured(device, read, area))
