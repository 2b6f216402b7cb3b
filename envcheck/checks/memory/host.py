"""Copies between the host's memory and a GPU: as fast as the link, and whole."""

from __future__ import annotations

from typing import NamedTuple

from ...data.bandwidth import PCIE_LANE
from ..acceleration.common import number
from ..declared import declared_causes
from ..gpu.link import pci_device
from ..reading import SnapshotView, known
from ..verdicts import Params, Passed, Verdicts, check
from .common import Measured, each_gpu_run, gb_s, several, spread_of, usual, words, words_of

CAUSE = declared_causes(__name__)

TO, FROM = "pinned to the GPU", "pinned from the GPU"
_LINK = 0.5  # of what the link carries: below it is slow
_FASTER = 1.1  # times what the link carries: then that is not the link
_PEERS = 0.7


class TrainedLink(NamedTuple):
    """A PCIe link as it was trained; seen: while copies ran. carries: GB/s each way."""

    generation: int
    width: int
    seen: bool

    @property
    def text(self) -> str:
        return f"generation {self.generation} x{self.width}"

    @property
    def carries(self) -> float:
        return PCIE_LANE[self.generation] * self.width


def link_of(one: Measured) -> TrainedLink | None:
    """The link that was negotiated: as NVML had it during the copies, else what it can be at most."""
    generation = max(int(one.value(way, "pcie_gen")) for way in (TO, FROM))
    width = max(int(one.value(way, "pcie_width")) for way in (TO, FROM))
    seen = bool(generation and width)
    if not seen and one.gpu is not None:
        device = pci_device(one.view, one.gpu)
        generation = known(one.gpu.pcie_gen_max) or 0
        width = known(one.gpu.pcie_width) or (known(device.link_width) if device else 0) or 0
    return TrainedLink(generation, width, seen) if generation in PCIE_LANE and width else None


@check("MEM-003")
def host_to_gpu(view: SnapshotView) -> Verdicts:
    runs: list[tuple[Measured, float]] = []

    def collect(one: Measured) -> Verdicts:
        trial = one.seen.trial("round trip")
        rates = [rate for way in (TO, FROM) if (rate := one.rate(way))]
        if wrong := number(trial, "wrong"):
            places: Params = {name: words_of(trial, name) for name in ("where", "bits")}
            mib = number(trial, "MiB")
            yield one.found(
                CAUSE["damaged-over-link"], [trial], words=words(wrong), mib=mib, **places
            )
        elif len(rates) < 2:
            yield one.why_not(TO if trial is None or trial.outcome == "ok" else "round trip")
        else:
            runs.append((one, min(rates)))

    yield from each_gpu_run(view, "links", collect)
    healthy = []
    for one, least in runs:
        why, usually = _slow(one, least, runs)
        if why:
            trials = [one.seen.trial(way) for way in (TO, FROM)]
            yield one.found(
                CAUSE["slow-host-copies"], trials, rate=gb_s(least), why=why, factor=usually / least
            )
        else:
            healthy.append(one)
    if healthy:
        yield Passed(_summary(healthy))


def _summary(passed: list[Measured]) -> str:
    link, shared = link_of(passed[0]), passed[0].shared
    parts = [
        f"{what} {spread_of(rates)}"
        for what, way in (("to it", TO), ("back", FROM))
        if (rates := [rate for one in passed if (rate := one.rate(way))])
    ]
    over = f" ({shared}: not judged)" if shared else f" over {link.text}" if link else ""
    return f"{several(passed)}{', '.join(parts)}{over}"


def _slow(one: Measured, least: float, runs: list[tuple[Measured, float]]) -> tuple[str, float]:
    """What it falls short of, and its GB/s; "" where it does not."""
    link, peers = link_of(one), usual(one, runs)
    if one.shared:
        return "", 0
    if link is not None and least > _FASTER * link.carries:
        link = None  # NVLink-C2C, or a link that a virtual machine makes up
    if link is not None and least < _LINK * link.carries:
        return f"its link, {link.text}, carries {gb_s(link.carries)}", link.carries
    if peers is not None and least < _PEERS * peers[0]:
        return f"its {peers[1]} peers reach {gb_s(peers[0])}", peers[0]
    return "", 0
