"""What held a slow row back: the first suspect among what was sampled beside it. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..data.bandwidth import PCIE_LANE
from ..facts.base import known
from ..facts.bench import RowRun
from ..facts.gpu import Gpu
from ..facts.telemetry import GpuSamples
from .records import SuspectKind

# NVML's bits of reasons for slower clocks (nvmlClocksEventReason*), those that no healthy load has first.
_BITS: tuple[tuple[int, SuspectKind, str], ...] = (
    (0x80, "power-brake", "the power brake held the clocks down"),
    (0x40, "heat", "thermal slowdown by the hardware"),
    (0x20, "heat", "thermal slowdown by the driver"),
    (0x08, "slowdown", "slowdown by the hardware"),
    (0x02, "clocks-set", "clocks that somebody has set"),
    (0x10, "clocks-set", "sync boost, which waits for other GPUs"),
    (0x100, "clocks-set", "clocks that a display asks for"),
)
_POWER_CAP = 0x04
_OFTEN = 0.05  # of the samples
_MOSTLY = 0.5
_LOW = 0.9  # of the clock that it could have
_NEAR = 3.0  # degrees below the slowdown
_FULL = 0.8  # of what a PCIe link carries


class Suspect(NamedTuple):
    kind: SuspectKind
    words: str


NOBODY = Suspect("", "")


def suspect(run: RowRun, gpus: Mapping[str, Gpu]) -> Suspect:
    """The first; NOBODY where nothing stands out. gpus: by PCI address."""
    for look in (_neighbour, _throttled, _clocks, _hot, _pcie, _capped):
        for samples in run.samples:
            found = look(samples, gpus.get(samples.gpu))
            if found is not None:
                return _named(found, samples, run, gpus)
    return NOBODY


def _named(found: Suspect, samples: GpuSamples, run: RowRun, gpus: Mapping[str, Gpu]) -> Suspect:
    if len(run.samples) < 2:
        return found
    gpu = gpus.get(samples.gpu)
    index = None if gpu is None else known(gpu.index)
    where = f"GPU {index}" if index is not None else f"GPU {samples.gpu}"
    return found._replace(words=f"{where}: {found.words}")


def values(samples: GpuSamples, name: str) -> list[float]:
    """Those of a column that are there, and can be numbers."""
    column = samples.values.get(name, [])
    return [one for one in column if one is not None and -1e12 < one < 1e12]


def _neighbour(samples: GpuSamples, gpu: Gpu | None) -> Suspect | None:
    others = values(samples, "other_processes")
    share = _share(one > 0 for one in others)
    if share < _OFTEN:
        return None
    return Suspect("neighbour", f"another process was on it in {share:.0%} of the samples")


def _throttled(samples: GpuSamples, gpu: Gpu | None) -> Suspect | None:
    reasons = [int(one) for one in values(samples, "throttle_reasons") if one >= 0]
    for bit, kind, words in _BITS:
        share = _share(bool(one & bit) for one in reasons)
        if share >= _OFTEN:
            return Suspect(kind, f"{words} in {share:.0%} of the samples")
    return None


def _capped(samples: GpuSamples, gpu: Gpu | None) -> Suspect | None:
    """The power limit is where a GPU under load should be; it counts last, and where it is a lowered one."""
    reasons = [int(one) for one in values(samples, "throttle_reasons") if one >= 0]
    share = _share(bool(one & _POWER_CAP) for one in reasons)
    if share < _MOSTLY:
        return None
    limit = None if gpu is None else known(gpu.power_limit_w)
    usual = None if gpu is None else known(gpu.power_default_limit_w)
    low = f", which is lowered to {limit:.0f} of {usual:.0f} W" if _is_below(limit, usual) else ""
    return Suspect("power-cap", f"held at its power limit{low} in {share:.0%} of the samples")


def _is_below(limit: float | None, usual: float | None) -> bool:
    return limit is not None and usual is not None and 0 < limit < 0.98 * usual


def _clocks(samples: GpuSamples, gpu: Gpu | None) -> Suspect | None:
    if gpu is None:
        return None
    capped = [int(one) & _POWER_CAP for one in values(samples, "throttle_reasons") if one >= 0]
    for name, most, what in (
        ("memory_clock_mhz", known(gpu.clock_memory_max_mhz), "memory's clock"),
        ("sm_clock_mhz", known(gpu.clock_sm_max_mhz), "SM clock"),
    ):
        seen = values(samples, name)
        if not seen or not most or (name == "sm_clock_mhz" and _share(map(bool, capped)) > _OFTEN):
            continue
        usual = statistics.median(seen)
        if usual < _LOW * most:
            return Suspect(
                "clocks-low", f"the {what} was {usual:,.0f} MHz, of {most:,} MHz that it can have"
            )
    return None


def _hot(samples: GpuSamples, gpu: Gpu | None) -> Suspect | None:
    limit = None if gpu is None else known(gpu.temperature_slowdown_c)
    seen = values(samples, "temperature_c")
    if limit is None or not seen or max(seen) < limit - _NEAR:
        return None
    return Suspect("heat", f"it reached {max(seen):.0f} °C, and slows down at {limit} °C")


def _pcie(samples: GpuSamples, gpu: Gpu | None) -> Suspect | None:
    generation = None if gpu is None else known(gpu.pcie_gen_max)
    width = None if gpu is None else known(gpu.pcie_width)
    if generation not in PCIE_LANE or not width:
        return None
    link = 1000 * PCIE_LANE[generation] * width
    for name, way in (("pcie_rx_mb_s", "to it"), ("pcie_tx_mb_s", "from it")):
        seen = values(samples, name)
        if seen and statistics.median(seen) >= _FULL * link:
            return Suspect(
                "pcie",
                f"{statistics.median(seen) / 1000:.1f} GB/s went {way}, and its PCIe link carries"
                f" {link / 1000:.1f}",
            )
    return None


def _share(seen: Iterable[bool]) -> float:
    found = list(seen)
    return sum(found) / len(found) if found else 0.0
