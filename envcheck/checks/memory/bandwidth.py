"""Whether a GPU's memory is as fast as its product's."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.bandwidth import memory_line, published_memory
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.missing import Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..acceleration.common import NOTHING_RUNS
from ..gpu.link import pci_device
from ..registry import check
from .common import Measured, each_gpu_run, gb_s, spread_of, usual

WAYS = ("copy", "read", "write", "triad")
_CACHED = 4  # times the L2 cache: smaller areas are read from it
_PUBLISHED = 0.5  # of what is published: below it is slow, whatever the product
_PEERS = 0.85  # of what its peers reach
_CLOCK = 0.9  # of the memory's highest clock
_HOLDS_DOWN = {
    "sw_power_cap": "the power limit holds its clocks down",
    "hw_slowdown": "the hardware slows it down",
    "hw_thermal_slowdown": "it is too hot",
    "sw_thermal_slowdown": "it is too hot",
    "hw_power_brake_slowdown": "the power supply slows it down",
}


@check(
    "MEM-002",
    title="Memory bandwidth",
    problem="has slow memory",
    about="Copies, reads, writes and a = b + 3 c over the GPU's own memory, timed by events: bytes read and"
    " written together, the fastest of the four. Healthy memory reaches 70 to 90 % of the published figure,"
    " with ECC on GDDR less. Below DCGM's pass line for the product (0.75 of what DCGM measured), below"
    " half of the published figure, or 15 % below the GPUs of its name in the machine is a warning, with"
    " what explains it. A part of a GPU (MIG, vGPU) is held against nothing, and so is what fits into the"
    " cache.",
    sources=(
        "github.com/NVIDIA/DCGM, nvvs/diag-skus.yaml.in (memory_bandwidth.minimum_bandwidth)",
        "envcheck/data/gpus.csv, the published figures",
    ),
    follows=(*NOTHING_RUNS, "MEM-001", "GPU-029", "GPU-008", "GPU-007", "GPU-030"),
    systems=("memory",),
)
def memory_bandwidth(view: SnapshotView) -> Iterator[Verdict]:
    told: list[tuple[Measured, float]] = []

    def collect(one: Measured) -> Iterator[Verdict]:
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
    shared = f" ({well[0][0].shared}: held against nothing)" if well[0][0].shared else ""
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
    causes = _causes(one)
    because = f" What explains it: {'; '.join(causes)}." if causes else ""
    return Finding(
        "warn",
        f"The memory of {one.called} reaches {gb_s(best)}, while {against}: what is bound by memory runs"
        f" that much slower.{because}",
        one.subjects,
        [
            *one.seen.evidence(*[one.seen.trial(way) for way in WAYS]),
            Evidence("envcheck.bandwidth", against, source),
        ],
        Remedy(
            "See what holds its memory's clock and its power down, and what else runs on it; compare with"
            " a GPU of the same name. If nothing explains it, ask the board's vendor.",
            [f"nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE,ECC -i {one.own_address}"],
        ),
        f"has slow memory: {gb_s(best)}",
    )


def _causes(one: Measured) -> list[str]:
    gpu = one.gpu
    if gpu is None:
        return []
    found = []
    seen, most = one.told("copy", "memory_mhz"), known(gpu.clock_memory_max_mhz)
    if seen and most and seen < _CLOCK * most:
        found.append(f"its memory runs at {seen:.0f} of {most} MHz")
    reasons = known(gpu.clock_event_reasons) or []
    found += list(dict.fromkeys(_HOLDS_DOWN[name] for name in reasons if name in _HOLDS_DOWN))
    limit, default = known(gpu.power_limit_w), known(gpu.power_default_limit_w)
    if limit and default and limit < 0.95 * default:
        found.append(f"its power limit is {limit:g} of {default:g} W")
    others = [process for process in known(gpu.processes) or [] if "C" in process.kind]
    if others:
        found.append(f"process {others[0].pid} is using it, too")
    if known(gpu.remap_failed):
        found.append("row remapping has failed on it")
    return found
