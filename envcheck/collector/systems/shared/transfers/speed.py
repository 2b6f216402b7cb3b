"""Rates of copies and kernels by CUDA events; NVML is asked for the link and the clocks while they run."""

import time

from ....kernels import timing
from ....kernels.sampler import Sampler

_SECONDS = 0.08  # of one measurement
_LIMIT = 1.5  # seconds, however slow it is
_WARM_UP = (0.05, 0.25)  # seconds at least and at most
_RISING = 1.03  # times the speed before
_SAMPLES = 3


def measured(device, work, size, watch=None, seconds=_SECONDS):
    """Evidence of what ``work``, a function that queues it, moves: ``size`` bytes, read and written."""
    figures = timing.measure(device, work, sampler=watch, seconds=seconds, limit=_LIMIT)
    if not figures["seconds"] > 0:
        raise ValueError("no time passed between two events")
    rate, spread = round(size / figures["seconds"] / 1e9, 3), figures["spread"]
    spread = None if spread is None else round(spread, 3)
    return {"GB/s": rate, "runs": figures["runs"], "MiB": size >> 20, "spread": spread}


def warm_up(device, work):
    """Run it until it becomes no faster: an idle GPU has lowered its link and its clocks."""
    began, before = time.monotonic(), None
    while time.monotonic() - began < _WARM_UP[1]:
        with timing.marks(device) as mark:
            first = mark()
            work()
            last = mark()
            device.wait(last)
            seconds = device.elapsed(first, last)
        steady = before is not None and seconds * _RISING >= before
        if steady and time.monotonic() - began > _WARM_UP[0]:
            return
        before = seconds


class LinkWatch(Sampler):
    """Asks NVML a few times while something runs: the PCIe link, and the clocks. Never raises."""

    calls = {
        "pcie_gen": (("nvmlDeviceGetCurrPcieLinkGeneration",), ()),
        "pcie_width": (("nvmlDeviceGetCurrPcieLinkWidth",), ()),
        "sm_mhz": (("nvmlDeviceGetClockInfo",), (1,)),
        "memory_mhz": (("nvmlDeviceGetClockInfo",), (2,)),
    }

    def __init__(self, params, device):
        Sampler.__init__(self, params.get("pynvml"), device.address, device.uuid)

    def sample(self):
        if max(map(len, self._seen.values())) < _SAMPLES:
            Sampler.sample(self)

    def taken(self, *names):
        """The highest that was seen of each of these; and begin anew."""
        values = {name: max(self._seen[name]) for name in names if self._seen[name]}
        self.reset()
        return values
