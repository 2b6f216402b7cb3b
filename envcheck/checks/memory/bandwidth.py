"""Whether a GPU's memory is as fast as its product's."""

from __future__ import annotations

from ...data.bandwidth import memory_line, published_memory
from ..acceleration.common import NOTHING_RUNS
from ..gpu.link import pci_device
from ..reading import Skip, SnapshotView
from ..verdicts import Evidence, Finding, Passed, Verdicts, check, warn
from .common import Measured, each_gpu_run, gb_s, spread_of, usual

WAYS = ("copy", "read", "write", "triad")
_CACHED = 4  # times the L2 cache: smaller areas are read from it
_PUBLISHED = 0.5  # of what is published: below it is slow, whatever the product
_PEERS = 0.85  # of what its peers reach


SLOW = warn(
    "slow-memory",
    "has slow memory: {rate}",
    "The memory of {gpu} reaches {rate}, while {against}: what is bound by memory runs that much slower.",
    "Check what holds its memory's clock and its power down, and what else runs on it; compare with a GPU of"
    " the same name. If nothing explains it, ask the board's vendor.",
    "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE,ECC -i {gpu}",
)


@check(
    "MEM-002",
    title="Memory bandwidth",
    causes=(SLOW,),
    about="Copies, reads, writes and a = b + 3 c over the GPU's own memory: the fastest of the four."
    " Healthy memory reaches 70 to 90 % of the published figure.",
    sources=["github.com/NVIDIA/DCGM, nvvs/diag-skus.yaml.in (memory_bandwidth.minimum_bandwidth)"],
    follows=(*NOTHING_RUNS, "MEM-001", "GPU-029", "GPU-008", "GPU-007", "GPU-030"),
    systems=("memory",),
)
def memory_bandwidth(view: SnapshotView) -> Verdicts:
    told: list[tuple[Measured, float]] = []

    def collect(one: Measured) -> Verdicts:
        rates = [rate for way in WAYS if (rate := one.rate(way))]
        if not rates:
            yield one.why_not("copy")
            return
        cache = one.told("device", "L2_MiB")
        if one.told("read", "MiB") < _CACHED * cache:
            raise Skip(f"{one.called} has too little free memory to tell it from its cache")
        told.append((one, max(rates)))

    yield from each_gpu_run(view, "memory", collect)
    well = []
    for one, best in told:
        found = _slow(view, one, best, told)
        if found is None:
            well.append((one, best))
        else:
            yield found
    if well:
        yield Passed(_summary(well))


def _summary(well: list[tuple[Measured, float]]) -> str:
    rates = [rate for _one, rate in well]
    published = {published_memory(one.name) for one, _rate in well}
    of = published.pop() if len(published) == 1 else None
    share = f", of {gb_s(of)} published" if of and not well[0][0].shared else ""
    shared = f" ({well[0][0].shared}: not judged)" if well[0][0].shared else ""
    each = f"{len(well)} GPUs: " if len(well) > 1 else ""
    return f"{each}{spread_of(rates)}{share}{shared}"


def _slow(
    view: SnapshotView, one: Measured, best: float, told: list[tuple[Measured, float]]
) -> Finding | None:
    if one.shared:
        return None
    device = pci_device(view, one.gpu) if one.gpu else None
    line = memory_line(device.device_id) if device else None
    published = published_memory(one.name) if one.name else None
    peers = usual(one, told)
    if line is not None and best < line.gb_s:
        against, source = f"DCGM passes from {gb_s(line.gb_s)} on", line.source
        if published:
            against += f", {gb_s(published)} are published"
    elif line is None and published is not None and best < _PUBLISHED * published:
        against, source = f"{gb_s(published)} are published", "envcheck/data/gpus.csv"
    elif peers is not None and best < _PEERS * peers[0]:
        against, source = f"its {peers[1]} peers reach {gb_s(peers[0])}", "its peers' runs"
    else:
        return None
    return one.found(
        SLOW,
        [one.seen.trial(way) for way in WAYS],
        [Evidence("envcheck.bandwidth", against, source)],
        rate=gb_s(best),
        against=against,
    )
