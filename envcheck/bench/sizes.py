"""Copies and all-reduces by size: rates from what the acceleration systems told. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from ..data.bandwidth import PCIE_LANE, peer_line, published_memory
from ..data.nccl_reference import pass_line
from ..facts.acceleration import BY_SIZE, SystemRun, SystemTrial
from ..facts.base import known
from ..facts.gpu import Gpu
from ..facts.missing import CannotJudge
from ..facts.snapshot import Snapshot
from ..facts.view import view_of
from .request import SYSTEMS

SUFFIX = " by size"  # of trials that tell nothing else
_LARGEST = 1 << 40  # bytes; a Snapshot may come from anybody
_FASTEST = 1e15  # bytes a second
_MOST_SERIES = 256
_TITLES = {"nccl": "NCCL", "horovod": "Horovod", "memory": "GPU memory", "links": "Host link"}
_FRAMEWORKS = {"tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}


class SizeRate(msgspec.Struct, frozen=True, kw_only=True):
    bytes: int
    seconds: float
    gb_s: float  # bytes by seconds; of a copy within a GPU's memory, read and written
    bus_gb_s: float | None = None  # of an all-reduce: times 2(n-1)/n


class SizeSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One copy, or one all-reduce, from the smallest size to the largest."""

    what: str  # as it is asked for: "links", "allreduce"
    title: str  # "NCCL", "GPU to GPU"
    name: str  # "pinned to the GPU"
    gpus: list[str] = []  # PCI addresses
    ranks: int = 0  # of an all-reduce
    on_cpu: bool = False
    rates: list[SizeRate] = []
    context: str = ""  # what it may be held beside: no judgement
    reason: str = ""  # why there is nothing, or no more


def series(snapshot: Snapshot) -> list[SizeSeries]:
    """All that were measured by size, in the order of WHAT."""
    gpus = _gpus(snapshot)
    found = []
    for what, systems in SYSTEMS.items():
        for run in (run for name in systems for run in _runs(snapshot) if run.system == name):
            found += [one for trial in run.trials if (one := _series(what, run, trial, gpus))]
    return found[:_MOST_SERIES]


def asked_by_size(snapshot: Snapshot) -> list[str]:
    """Those of WHAT that were measured by size."""
    return list(dict.fromkeys(one.what for one in series(snapshot)))


def bus(gb_s: float, ranks: int) -> float:
    """What the slowest link carries: each byte goes over it 2(n-1)/n times (nccl-tests, PERFORMANCE.md)."""
    return gb_s * 2 * (ranks - 1) / ranks


def _runs(snapshot: Snapshot) -> Iterator[SystemRun]:
    for document in (snapshot.machine, snapshot.target):
        probe = None if document is None else document.acceleration
        if probe is not None and probe.facts is not None:
            yield from probe.facts.runs


def _gpus(snapshot: Snapshot) -> dict[str, Gpu]:
    try:
        seen = view_of(snapshot).seen_gpus
    except CannotJudge:
        return {}
    return {address: gpu for gpu in seen if (address := known(gpu.pci_address))}


def _series(
    what: str, run: SystemRun, trial: SystemTrial, gpus: dict[str, Gpu]
) -> SizeSeries | None:
    """None where the trial was none by size."""
    count = trial.evidence.get("ranks")
    ranks = count if isinstance(count, int) and 1 < count < 10_000 else 0
    reduces = what == "allreduce"
    rates = _rates(trial, 2 if run.system == "memory" else 1, ranks if reduces else 0)
    own = trial.name.endswith(SUFFIX)
    if not own and not rates:
        return None
    title = _TITLES.get(run.system, "GPU to GPU")
    if run.framework:
        title += f" ({_FRAMEWORKS[run.framework]})"
    name = trial.name.removesuffix(SUFFIX)
    ends = [address for address in run.gpus if address in trial.name]
    there = ends if run.system == "peers" and len(ends) == 2 else list(run.gpus)
    here = [gpus[address] for address in there if address in gpus]
    on_cpu = run.device == "cpu"
    return SizeSeries(
        what=what,
        title=title,
        name=name,
        gpus=there,
        ranks=ranks,
        on_cpu=on_cpu,
        rates=rates,
        context="" if on_cpu or len(here) != len(there) else _context(run.system, name, here),
        reason="" if trial.outcome == "ok" else trial.reason or trial.outcome,
    )


def _rates(trial: SystemTrial, times: int, ranks: int) -> list[SizeRate]:
    found = []
    for key, seconds in trial.evidence.items():
        size = BY_SIZE.fullmatch(key)
        if size is None or isinstance(seconds, bool) or not isinstance(seconds, int | float):
            continue
        count = int(size[1])
        fits = 0 < count <= _LARGEST and math.isfinite(seconds) and seconds > 0
        if not fits or count * times / seconds > _FASTEST:
            continue
        rate = count * times / seconds / 1e9
        over = bus(rate, ranks) if ranks else None
        found.append(SizeRate(bytes=count, seconds=seconds, gb_s=rate, bus_gb_s=over))
    return sorted(found, key=lambda one: one.bytes)


def _context(system: str, name: str, gpus: list[Gpu]) -> str:
    """A figure of other machines, or of the link itself."""
    names = {known(gpu.name) or "" for gpu in gpus}
    if len(names) != 1:
        return ""
    (product,) = names
    if system == "nccl":
        line = pass_line(product, len(gpus))
        return "" if line is None else _line(line.gb_s, f"{line.size_mib:,} MiB", line.source)
    if system == "memory":
        published = published_memory(product)
        return "" if published is None else f"published: {published:,.0f} GB/s"
    if system == "peers":
        peers = peer_line(product) if name.startswith("directly") else None
        return "" if peers is None else _line(peers.gb_s, "NVSwitches", peers.source)
    generation, width = known(gpus[0].pcie_gen_max), known(gpus[0].pcie_width)
    if system != "links" or generation not in PCIE_LANE or not width:
        return ""
    most = PCIE_LANE[generation] * width
    return f"{width} lanes of PCIe {generation} carry {most:.1f} GB/s each way"


def _line(gb_s: float, with_: str, source: str) -> str:
    return f"an operator's pass line: {gb_s:.0f} GB/s with {with_} ({source})"
