"""Direct copies from GPU to GPU, every pair: a pattern must arrive whole."""

import itertools
import time
from collections import namedtuple
from functools import partial

from .running import records
from .shared.transfers import speed
from .shared.transfers.device import TransferDevice
from .shared.transfers.pattern import area_size, copied
from .shared.transfers.pattern_ptx import RESULT

SYSTEM = "peers"
DOCUMENT = "machine"
GPUS = 2
ALONE = True
DEADLINE = 60.0

_MOST_PAIRS = 45  # of which each is two trials
_SECONDS = 0.03  # of one measurement

# One GPU of a pair: its TransferDevice, its name, and what it sends, receives and counts in.
_End = namedtuple("_End", "device address first second result")


def run(_framework, params, tell):
    first = TransferDevice()
    devices = [first] + [TransferDevice(number) for number in range(1, first.cuda.count())]
    if any(device.evidence()["instance"] for device in devices):
        raise records.NotApplicable("MIG instances do not reach each other directly")
    if len(devices) < 2:
        raise records.NotApplicable("CUDA lists one GPU")
    size, ends = area_size(params), []
    for device in devices:
        device.use()
        areas = [device.allocate(length) for length in (size, size, RESULT.size)]
        ends.append(_End(device, device.address or "CUDA device %d" % device.device, *areas))
    until = time.monotonic() + params["seconds"] / 2.0
    pairs = itertools.combinations(range(len(ends)), 2)
    near_first = sorted(pairs, key=lambda pair: pair[1] - pair[0])
    for number, pair in enumerate(near_first):
        if number >= _MOST_PAIRS or time.monotonic() > until:
            with tell.trial("left out") as trial:
                trial["pairs"] = len(near_first) - number
            return
        for here, there in itertools.permutations([ends[place] for place in pair]):
            with tell.trial("directly %s to %s" % (here.address, there.address)) as trial:
                _direct(trial, here, there, size)


def _direct(trial, here, there, size):
    """A pattern goes over and is looked at; then the copy is timed, and the pattern read from there."""
    one, other = here.device, there.device
    one.use()
    if not (one.reaches(other) and other.reaches(one)):
        raise records.NotSupported("the driver lets these two not reach each other directly")
    seed = sum(here.address.encode("utf-8")) * 1000003
    copy = partial(one.to_peer, other, there.second, here.first, size)
    with one.access(other):
        other.use()
        other.fill(there.second, 0xA5, size)
        other.synchronize()
        one.use()
        one.write(here.first, size, seed, 0)
        copy()
        one.synchronize()
        other.use()
        trial.update(copied(other, there.second, size, seed, there.result))
        one.use()
        trial.update(speed.measured(one, copy, size, seconds=_SECONDS))
        # The other end looks into this one's memory: loads take another way than copies.
        other.use()
        trial["wrong_read"] = other.wrong(here.first, size, seed, 0, there.result)[0]
