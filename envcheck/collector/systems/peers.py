"""Direct copies from GPU to GPU, every pair: a pattern must arrive whole."""

import itertools
import time

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


def run(_framework, params, tell):
    first = TransferDevice()
    devices = [first] + [TransferDevice(number) for number in range(1, first.cuda.count())]
    ends = [PeerEnd(device, device.evidence()) for device in devices]
    if any(end.instance for end in ends):
        raise records.NotApplicable("MIG instances do not reach each other directly")
    if len(ends) < 2:
        raise records.NotApplicable("CUDA lists one GPU")
    size = area_size(params)
    for end in ends:
        end.device.use()
        end.first, end.second = (end.device.allocate(size) for _ in range(2))
        end.result = end.device.allocate(RESULT.size)
    until = time.monotonic() + params["seconds"] / 2.0
    places = itertools.combinations(range(len(ends)), 2)
    near_first = sorted(places, key=lambda pair: pair[1] - pair[0])
    skipped = 0
    for number, (one, other) in enumerate((ends[a], ends[b]) for a, b in near_first):
        if number >= _MOST_PAIRS or time.monotonic() > until:
            skipped += 1
            continue
        for here, there in ((one, other), (other, one)):
            with tell.trial("directly %s to %s" % (here.address, there.address)) as trial:
                _direct(trial, here, there, size)
    if skipped:
        with tell.trial("left out") as trial:
            trial["pairs"] = skipped


class PeerEnd(object):
    """One GPU of a pair."""

    def __init__(self, device, facts):
        self.device = device
        self.address = device.address or "CUDA device %d" % device.device
        self.instance = facts["instance"]


def _direct(trial, here, there, size):
    here.device.use()
    ways = [(here, there), (there, here)]
    if not all(one.device.reaches(other.device) for one, other in ways):
        raise records.NotSupported("the driver lets these two not reach each other directly")
    with here.device.access(there.device):
        _copy(trial, here, there, size)
        there.device.use()
        # The other end looks into this one's memory: loads take another way than copies.
        trial["wrong_read"] = there.device.wrong(here.first, size, _seed(here), 0, there.result)[0]
        here.device.use()


def _copy(trial, here, there, size):
    """A pattern goes over and is looked at; then the copy is timed."""
    seed = _seed(here)
    there.device.use()
    there.device.fill(there.second, 0xA5, size)
    there.device.synchronize()
    here.device.use()
    here.device.write(here.first, size, seed, 0)

    def copy():
        here.device.to_peer(there.device, there.second, here.first, size)

    copy()
    here.device.synchronize()
    there.device.use()
    trial.update(copied(there.device, there.second, size, seed, there.result))
    here.device.use()
    rates = speed.measured(here.device, copy, size, seconds=_SECONDS)
    trial.update(rates)


def _seed(end):
    return sum(end.address.encode("utf-8")) * 1000003
