"""The check on how fast NCCL is between the GPUs of one machine, held against what joins them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from ...data.bandwidth import NVLINK, PCIE_LANE
from ...data.nccl_reference import measured, pass_line
from ...data.products import product
from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import CannotJudge
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Finding, Passed, Verdict
from ..network.common import change_setting, network, setting
from ..peer_groups import is_vgpu
from ..registry import check
from .common import Seen, each_run, number, text, words
from .nccl import ABSENT, FOLLOWS, NVLS_OFF, TOGETHER, count, is_right, nccl, way

# What is far below, as a part of what the links carry, from so many MiB on.
_OF_NVLINKS = ((1024, 0.5), (256, 0.35))
_OF_PCIE = ((32, 0.05),)
_OF_MEASURED = 0.7
_BUS = re.compile(r"bus_(\d{1,6})_mib")
_OFF = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_NET")

ROUND_ABOUT = Cause(
    "indirect-transport",
    "warn",
    headline="NCCL goes over {over}{why}",
    sentence="{nccl} goes over {over}{why}: {what}.",
    remedy="Look at what keeps the GPUs from reaching each other directly.",
    commands=["nvidia-smi topo -m", "nvidia-smi topo -p2p r", "export NCCL_DEBUG=INFO"],
)
SLOW = Cause(
    "slow-between-gpus",
    "warn",
    headline="NCCL is slow between the GPUs: {rate}",
    sentence="{nccl} is slow between {ranks} GPUs: {how}; {way}.",
    remedy="Look at the links under load, for NVLinks that are down, lanes that are missing, and clocks that"
    " are held back; and at what NCCL chooses.",
    commands=[
        "nvidia-smi topo -m",
        "nvidia-smi nvlink -s",
        "nvidia-smi -q -d PERFORMANCE,CLOCK",
        "export NCCL_DEBUG=INFO",
    ],
)


class BusRate(NamedTuple):
    mib: int
    gb_s: float


class Joined(NamedTuple):
    """What the slowest GPU's links carry each way. words: "18 NVLinks"."""

    gb_s: float
    words: str
    limits: tuple[tuple[int, float], ...]


@check(
    "ACC-013",
    title="NCCL bandwidth",
    causes=[ROUND_ABOUT, SLOW],
    about="The bus bandwidth of NCCL's all-reduce, 2(n-1)/n of its bytes by its time, from 1 MiB up to what"
    " memory and time allow, timed by each GPU's own events; the slowest GPU of the best round counts. A"
    " warning, never a failure: below half of what the NVLinks of a GPU carry at 1 GiB, where healthy"
    " machines reach two thirds and more (a third at 256 MiB), judged where a switch joins all GPUs, or all"
    " of the machine's take part; below a twentieth of the PCIe link, since rings through the host's memory"
    " are that different; below 0.7 of what the same number of the same GPUs reached with this size and"
    " algorithm; by way of the host's memory or the network stack, where NVLink or memory would do. What can"
    " be compared with nothing is shown.",
    sources=(
        "nccl-tests, doc/PERFORMANCE.md: bus bandwidth",
        "nccl_reference.csv, a source in every row",
        "products.csv: NVLinks of a GPU",
    ),
    follows=(*FOLLOWS, "ACC-012", "NET-003", "GPU-010", "PCI-005"),
    systems=("nccl",),
)
def nccl_bandwidth(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        together = seen.trial(TOGETHER)
        rates = _rates(together)
        if together is None or not is_right(together) or not rates:
            yield seen.unjudged("no rate was taken: the sum did not come, or is wrong")
            return
        gpus = _gpus(view, seen)
        found = list(_slow(view, seen, together, rates, gpus))
        yield from found
        if not found:
            yield Passed(_detail(seen, together, rates, gpus))

    yield from each_run(view, "nccl", judge, absent=ABSENT)


def _rates(trial: SystemTrial | None) -> list[BusRate]:
    """By size, the largest last."""
    found = []
    for name in {} if trial is None else trial.evidence:
        size = _BUS.fullmatch(name)
        if size is not None and number(trial, name) > 0:
            found.append(BusRate(int(size[1]), number(trial, name)))
    return sorted(found)


def _gpus(view: SnapshotView, seen: Seen) -> list[Gpu]:
    """Those that took part; [] where not all of them are known."""
    try:
        by_address = {known(gpu.pci_address): gpu for gpu in view.seen_gpus}
    except CannotJudge:
        return []
    found = [by_address[address] for address in seen.run.gpus if address in by_address]
    ranks = count(seen.trial(TOGETHER), "ranks")
    return found if len(found) == ranks and not any(is_vgpu(gpu) for gpu in found) else []


def _slow(
    view: SnapshotView, seen: Seen, together: SystemTrial, rates: list[BusRate], gpus: list[Gpu]
) -> Iterator[Finding]:
    largest = rates[-1]
    wires = _nvlinks(view, gpus)
    transports = words(together, "transports")
    if transports and not any(one.startswith("P2P") for one in transports) and wires:
        yield _round_about(view, seen, together, f"{wires.words} of each GPU stay unused")
        return
    if any(one.startswith("NET/Socket") for one in transports):
        yield _round_about(
            view, seen, together, "what goes between the GPUs of one machine is sent"
        )
        return
    links = wires or (_pcie(gpus) if transports else None)
    part = None if links is None else next((p for m, p in links.limits if largest.mib >= m), None)
    if links is not None and part is not None and largest.gb_s < part * links.gb_s:
        yield _far_below(
            seen,
            together,
            f"{_shown(largest)}, less than {part:.0%} of the {links.gb_s:.0f} GB/s that"
            f" {links.words} carry each way",
        )
        return
    yield from _below_measured(seen, together, rates, gpus)


def _nvlinks(view: SnapshotView, gpus: list[Gpu]) -> Joined | None:
    """None where the GPUs have none, or what joins which of them is not known."""
    if not gpus:
        return None
    try:
        everyone = len(view.seen_gpus) == len(gpus)
    except CannotJudge:
        return None
    found = []
    for gpu in gpus:
        sold = product(known(gpu.name) or "")
        active = sum(known(link.active) is True for link in known(gpu.nvlinks) or [])
        if sold is None or not active or sold.nvlink_generation not in NVLINK:
            return None
        joined = sold.nvswitch or (everyone and (sold.board == "module" or len(gpus) == 2))
        if not joined:
            return None
        found.append(
            Joined(active * NVLINK[sold.nvlink_generation], f"{active} NVLinks", _OF_NVLINKS)
        )
    return min(found)


def _pcie(gpus: list[Gpu]) -> Joined | None:
    """None where a link is not known. Idle GPUs lower their links: the most that they can have counts."""
    found = []
    for gpu in gpus:
        generation, width = known(gpu.pcie_gen_max), known(gpu.pcie_width)
        if generation not in PCIE_LANE or not width:
            return None
        words = f"{width} PCIe lanes of generation {generation}"
        found.append(Joined(PCIE_LANE[generation] * width, words, _OF_PCIE))
    return min(found, default=None)


def _below_measured(
    seen: Seen, together: SystemTrial, rates: list[BusRate], gpus: list[Gpu]
) -> Iterator[Finding]:
    name = _one_name(gpus)
    for trial in (together, seen.trial(NVLS_OFF)):
        if trial is None or not name:
            continue
        for rate in reversed(rates if trial is together else _rates(trial)):
            algorithm = text(trial, f"algorithm_{rate.mib}_mib")
            reached = measured(name, len(gpus), rate.mib, algorithm)
            if reached is not None and rate.gb_s < _OF_MEASURED * reached.gb_s:
                yield _far_below(
                    seen,
                    trial,
                    f"{_shown(rate)} by {algorithm}, and {len(gpus)} {name} elsewhere"
                    f" {reached.gb_s:.0f} GB/s ({reached.source})",
                )
                return


def _round_about(view: SnapshotView, seen: Seen, together: SystemTrial, what: str) -> Finding:
    named = [one for one in words(together, "settings") if one.partition("=")[0] in _OFF]
    known_to_us = []
    with suppress(CannotJudge):
        known_to_us = [setting(network(view), one.partition("=")[0]) for one in named]
    remedy = next(
        (change_setting(one, "Take it away") for one in known_to_us if one is not None), None
    )
    over = ", ".join(words(together, "transports")[:3])
    why = f", since {', '.join(named)} is set" if named else ""
    evidence = seen.evidence(together)
    return ROUND_ABOUT.found(
        evidence=evidence, advice=remedy, nccl=nccl(seen), over=over, why=why, what=what
    )


def _far_below(seen: Seen, trial: SystemTrial, how: str) -> Finding:
    return SLOW.found(
        evidence=seen.evidence(),
        nccl=nccl(seen),
        ranks=count(trial, "ranks"),
        how=how,
        way=way(trial),
        rate=_shown(_rates(trial)[-1]),
    )


def _detail(seen: Seen, together: SystemTrial, rates: list[BusRate], gpus: list[Gpu]) -> str:
    parts = [f"{_shown(rates[-1])}, {way(together)}"]
    without = _rates(seen.trial(NVLS_OFF))
    if without:
        parts.append(f"{_shown(without[-1])} without NVLS")
    line = pass_line(_one_name(gpus), len(gpus)) if gpus else None
    if line is not None:
        size = f"{line.size_mib >> 10} GiB"
        parts.append(f"Azure passes machines like it at {line.gb_s:.0f} GB/s with {size}")
    return "; ".join(parts)


def _one_name(gpus: list[Gpu]) -> str:
    names = {known(gpu.name) or "" for gpu in gpus}
    return names.pop() if len(names) == 1 else ""


def _shown(rate: BusRate) -> str:
    size = f"{rate.mib >> 10} GiB" if rate.mib >= 1024 else f"{rate.mib} MiB"
    return f"{rate.gb_s:.4g} GB/s with {size}"
