"""The check on how fast NCCL is between the GPUs of one machine, held against what joins them."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...data.bandwidth import NVLINK, PCIE_LANE
from ...data.nccl_reference import measured
from ...data.products import product
from ...facts.acceleration import SystemTrial
from ...facts.network import Network
from ..declared import declared_causes
from ..network.common import gpus as gpus_if_known
from ..network.common import network, setting
from ..peer_groups import is_vgpu
from ..reading import Gpu, SnapshotView, known, or_else
from ..settings import change_setting
from ..verdicts import Finding, Params, Passed, Verdicts, check
from .common import Seen, each_run, number, text, words
from .nccl import ABSENT, NVLS_OFF, TOGETHER, is_right, nccl, way

CAUSE = declared_causes(__name__)

# What is far below, as a part of what the links carry, from so many MiB on.
_OF_NVLINKS = ((1024, 0.5), (256, 0.35))
_OF_PCIE = ((32, 0.05),)
_OF_MEASURED = 0.7
_BUS = re.compile(r"bus_(\d{1,6})_mib")
_OFF = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_NET")


class BusRate(NamedTuple):
    mib: int
    gb_s: float

    def __str__(self) -> str:
        size = f"{self.mib >> 10} GiB" if self.mib >= 1024 else f"{self.mib} MiB"
        return f"{self.gb_s:.4g} GB/s with {size}"


class Joined(NamedTuple):
    """What the slowest GPU's links carry each way. words: "18 NVLinks"."""

    gb_s: float
    words: str
    limits: tuple[tuple[int, float], ...]


@check("ACC-013")
def nccl_bandwidth(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        together = seen.trial(TOGETHER)
        rates = _rates(together)
        if together is None or not is_right(together) or not rates:
            yield seen.unjudged("no rate was taken: the sum did not come, or is wrong")
            return
        gpus = _gpus(view, seen)
        found = _indirect(view, seen, together, gpus) or _slow(view, seen, together, rates, gpus)
        parts = [f"{rates[-1]}, {way(together)}"]
        parts += [f"{rate} without NVLS" for rate in _rates(seen.trial(NVLS_OFF))[-1:]]
        yield found or Passed("; ".join(parts))

    yield from each_run(view, "nccl", judge, absent=ABSENT)


def _rates(trial: SystemTrial | None) -> list[BusRate]:
    """By size, the largest last."""
    return sorted(
        BusRate(int(size[1]), number(trial, name))
        for name in ([] if trial is None else trial.evidence)
        if (size := _BUS.fullmatch(name)) and number(trial, name) > 0
    )


def _gpus(view: SnapshotView, seen: Seen) -> list[Gpu]:
    """Those that took part; [] where not all of them are known."""
    by_address = {known(gpu.pci_address): gpu for gpu in gpus_if_known(view)}
    found = [by_address[address] for address in seen.run.gpus if address in by_address]
    ranks = number(seen.trial(TOGETHER), "ranks")
    return found if len(found) == ranks and not any(map(is_vgpu, found)) else []


def _indirect(
    view: SnapshotView, seen: Seen, together: SystemTrial, gpus: list[Gpu]
) -> Finding | None:
    transports, wires = words(together, "transports"), _nvlinks(view, gpus)
    if wires and transports and not any(one.startswith("P2P") for one in transports):
        what = f"{wires.words} of each GPU stay unused"
    elif any(one.startswith("NET/Socket") for one in transports):
        what = "what goes between the GPUs of one machine is sent"
    else:
        return None
    named = [one for one in words(together, "settings") if one.partition("=")[0] in _OFF]
    settings = or_else(lambda: network(view), Network())
    asked = [setting(settings, one.partition("=")[0]) for one in named]
    return CAUSE["indirect-transport"].found(
        evidence=seen.evidence(together),
        advice=next((change_setting(one, "Take it away") for one in asked if one), None),
        nccl=nccl(seen),
        over=", ".join(transports[:3]),
        why=f", since {', '.join(named)} is set" if named else "",
        what=what,
    )


def _slow(
    view: SnapshotView, seen: Seen, together: SystemTrial, rates: list[BusRate], gpus: list[Gpu]
) -> Finding | None:
    how, of = _below_links(view, together, rates[-1], gpus), together
    names = {known(gpu.name) or "" for gpu in gpus}
    name = names.pop() if len(names) == 1 else ""
    for trial in (together, seen.trial(NVLS_OFF)):
        for rate in reversed(_rates(trial)) if name and not how else ():
            algorithm = text(trial, f"algorithm_{rate.mib}_mib")
            reached = measured(name, len(gpus), rate.mib, algorithm)
            if trial and reached is not None and rate.gb_s < _OF_MEASURED * reached.gb_s:
                others = f"{len(gpus)} {name} elsewhere {reached.gb_s:.0f} GB/s ({reached.source})"
                how, of = f"{rate} by {algorithm}, and {others}", trial
                break
    if not how:
        return None
    params: Params = {
        "ranks": number(of, "ranks"),
        "how": how,
        "way": way(of),
        "rate": str(_rates(of)[-1]),
    }
    return CAUSE["slow-between-gpus"].found(evidence=seen.evidence(), nccl=nccl(seen), **params)


def _below_links(
    view: SnapshotView, together: SystemTrial, largest: BusRate, gpus: list[Gpu]
) -> str:
    links = _nvlinks(view, gpus) or (_pcie(gpus) if words(together, "transports") else None)
    for mib, part in links.limits if links is not None else ():
        if links is not None and largest.mib >= mib:
            carried = f"{links.gb_s:.0f} GB/s that {links.words} carry each way"
            below = largest.gb_s < part * links.gb_s
            return f"{largest}, less than {part:.0%} of the {carried}" if below else ""
    return ""


def _nvlinks(view: SnapshotView, gpus: list[Gpu]) -> Joined | None:
    """None where the GPUs have none, or what joins which of them is not known."""
    everyone = bool(gpus) and len(view.seen_gpus) == len(gpus)
    found = []
    for gpu in gpus:
        sold = product(known(gpu.name) or "")
        active = sum(known(link.active) is True for link in known(gpu.nvlinks) or [])
        if sold is None or not active or sold.nvlink_generation not in NVLINK:
            return None
        if not sold.nvswitch and not (everyone and (sold.board == "module" or len(gpus) == 2)):
            return None
        rate = active * NVLINK[sold.nvlink_generation]
        found.append(Joined(rate, f"{active} NVLinks", _OF_NVLINKS))
    return min(found, default=None)


def _pcie(gpus: list[Gpu]) -> Joined | None:
    """None where a link is not known. Idle GPUs lower their links: the most that they can have counts."""
    found = []
    for gpu in gpus:
        generation, width = known(gpu.pcie_gen_max), known(gpu.pcie_width)
        if generation not in PCIE_LANE or not width:
            return None
        lanes = f"{width} PCIe lanes of generation {generation}"
        found.append(Joined(PCIE_LANE[generation] * width, lanes, _OF_PCIE))
    return min(found, default=None)
