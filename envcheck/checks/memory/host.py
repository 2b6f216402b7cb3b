"""Copies between the host's memory and a GPU: as fast as the link, whole, and from which NUMA node."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...data.bandwidth import PCIE_LANE
from ..acceleration.common import NOTHING_RUNS, number
from ..gpu.link import in_virtual_machine, pci_device
from ..on_the_bus import link_state
from ..reading import Skip, SnapshotView, known
from ..verdicts import (
    Evidence,
    Finding,
    Passed,
    Verdicts,
    check,
    fail,
    fill_in,
    warn,
)
from .common import Measured, each_gpu_run, gb_s, spread_of, trials_named, usual, words, words_of

TO, FROM, BOTH = "pinned to the GPU", "pinned from the GPU", "pinned both ways"
PAGEABLE = ("pageable to the GPU", "pageable from the GPU")
_LINK = 0.5  # of what the link carries: below it is slow
_FASTER = 1.1  # times what the link carries: then that is not the link
_PEERS = 0.7
_NODE = re.compile(r"node (\d{1,4}) (to|from) the GPU")
_FAR = 0.5  # of what comes from the near node
_NEAR = 0.8  # of what comes from the best one


class TrainedLink(NamedTuple):
    """A PCIe link as it was trained; seen: while copies ran."""

    generation: int
    width: int
    seen: bool

    @property
    def carries(self) -> float:
        """GB/s each way."""
        return PCIE_LANE[self.generation] * self.width

    @property
    def told(self) -> str:
        return f"generation {self.generation} x{self.width}"


def link_of(one: Measured) -> TrainedLink | None:
    """The link that was negotiated: as NVML told it during the copies, else what it can be at most."""
    generation = max(int(one.told(way, "pcie_gen")) for way in (TO, FROM))
    width = max(int(one.told(way, "pcie_width")) for way in (TO, FROM))
    seen = bool(generation and width)
    if not seen and one.gpu is not None:
        device = pci_device(one.view, one.gpu)
        generation = known(one.gpu.pcie_gen_max) or 0
        width = known(one.gpu.pcie_width) or (known(device.link_width) if device else 0) or 0
    return TrainedLink(generation, width, seen) if generation in PCIE_LANE and width else None


_PROGRAM = fill_in("PROGRAM", "your program").replace("{", "{{").replace("}", "}}")


DAMAGED = fail(
    "damaged-over-link",
    "gets and gives damaged data over its link",
    "{words} of 8 bytes came back different from a copy of {mib:,.0f} MiB to the host and back to {gpu}"
    " ({where}, bits that differ: {bits}): data is damaged on its way.",
    "Run this again with the memory check: if that passes, the link or the host's memory damages data. Check"
    " the link's errors, reseat the GPU or its riser, and test the host's memory.",
    "nvidia-smi -q -d PCIE -i {gpu}",
    "sudo dmesg | grep -iE 'aer|edac|mce|iommu'",
)
SLOW = warn(
    "slow-host-copies",
    "is slow to copy to and from: {rate}",
    "Copies between pinned host memory and {gpu} reach {rate}, {why}.",
    "Check how the link came up and in which slot the GPU is, bind the job to the processors near it, and"
    " compare with the machine's other GPUs.",
    "nvidia-smi -q -d PCIE -i {gpu}",
    link_state("{gpu}"),
    "nvidia-smi topo -m",
)


@check(
    "MEM-003",
    title="Host to GPU",
    causes=(DAMAGED, SLOW),
    about="Copies between pinned host memory and the GPU, each way and both at once, while NVML is asked"
    " for the link. Healthy machines reach 75 to 90 % of what the link carries; below half of it, far below"
    " the GPUs of its name, or over a link that came up with less than card and slot have, is a warning.",
    sources=["PCI Express Base Specification, the generations' rates"],
    follows=(*NOTHING_RUNS, "MEM-001", "GPU-010", "PCI-005", "PCI-008", "PCI-006", "GPU-018"),
    systems=("links",),
)
def host_to_gpu(view: SnapshotView) -> Verdicts:
    told: list[tuple[Measured, float]] = []

    def collect(one: Measured) -> Verdicts:
        trial = one.seen.trial("round trip")
        if one.told("round trip", "wrong"):
            yield _wrong(one)
            return
        rates = [rate for way in (TO, FROM) if (rate := one.rate(way))]
        if len(rates) < 2:
            yield one.why_not(TO if trial is None or trial.outcome == "ok" else "round trip")
            return
        told.append((one, min(rates)))

    yield from each_gpu_run(view, "links", collect)
    well = []
    for one, least in told:
        found = _slow(view, one, least, told)
        if found is None:
            well.append(one)
        else:
            yield found
    if well:
        yield Passed(_summary(well))


def _wrong(one: Measured) -> Finding:
    trial = one.seen.trial("round trip")
    assert trial is not None
    return one.found(
        DAMAGED,
        [trial],
        words=words(one.told("round trip", "wrong")),
        mib=one.told("round trip", "MiB"),
        where=words_of(trial, "where"),
        bits=words_of(trial, "bits"),
    )


def _summary(passed: list[Measured]) -> str:
    first, link = passed[0], link_of(passed[0])
    parts = [
        f"{what} {spread_of(rates)}"
        for what, ways in (("to it", (TO,)), ("back", (FROM,)), ("pageable", PAGEABLE))
        if (rates := [rate for one in passed for way in ways if (rate := one.rate(way))])
    ]
    each = f"{len(passed)} GPUs: " if len(passed) > 1 else ""
    shared = f" ({first.shared}: not judged)" if first.shared else ""
    over = f" over {link.told}" if link and link.seen and not shared else ""
    return f"{each}{', '.join(parts)}{over}{shared}"


def _slow(
    view: SnapshotView, one: Measured, least: float, told: list[tuple[Measured, float]]
) -> Finding | None:
    if one.shared:
        return None
    link = link_of(one)
    peers = usual(one, told)
    short = _short(view, one, link)
    if link is not None and least > _FASTER * link.carries:
        link = None  # NVLink-C2C, or a link that a virtual machine makes up
        short = ""
    if link is not None and least < _LINK * link.carries:
        why = (
            f"while its link, {link.told}, carries {gb_s(link.carries)}: a factor of"
            f" {link.carries / least:.1f}"
        )
    elif short:
        why = f"over a link that came up with {short}"
    elif peers is not None and least < _PEERS * peers[0]:
        why = (
            f"while its {peers[1]} peers reach {gb_s(peers[0])}: a factor of {peers[0] / least:.1f}"
        )
    else:
        return None
    return one.found(
        SLOW,
        [one.seen.trial(way) for way in (TO, FROM, BOTH, *PAGEABLE)],
        rate=gb_s(least),
        why=why,
    )


def _short(view: SnapshotView, one: Measured, link: TrainedLink | None) -> str:
    """What the link lacks of what card and slot have, seen under load; "" in virtual machines."""
    if link is None or not link.seen or one.gpu is None or in_virtual_machine(view, one.gpu):
        return ""
    device = pci_device(view, one.gpu)
    most = known(one.gpu.pcie_gen_max)
    lanes = [known(one.gpu.pcie_width_max), known(device.slot_max_link_width) if device else None]
    short = []
    if most and link.generation < most:
        short.append(f"generation {link.generation} of {most}")
    if all(lanes) and link.width < min(lane for lane in lanes if lane):
        short.append(f"x{link.width} of x{min(lane for lane in lanes if lane)}")
    return " and ".join(short)


FAR = warn(
    "far-numa-node",
    "is {times:.1f} times as far from NUMA node {worst}",
    "Host memory of NUMA node {worst} reaches {gpu} at {far}, that of its own node {own} at {near}: a job"
    " that the scheduler puts on the wrong processors loads its data {times:.1f} times as slowly.",
    "Start what uses this GPU on its own node, and pin data loaders' workers there; check the links between"
    " the processors in the firmware.",
    f"numactl --cpunodebind={{own}} --membind={{own}} {_PROGRAM}",
    "numactl --hardware",
)
MISPLACED = warn(
    "wrong-numa-node",
    "is near NUMA node {best}, and the kernel says {own}",
    "The kernel calls NUMA node {own} near to {gpu}, and memory of node {best} is faster ({rates}): whatever"
    " binds a job by that table binds it to the wrong processors.",
    "Update the firmware; in a virtual machine let its host give it the GPU's real node. Until then bind by"
    " measurement.",
    f"numactl --cpunodebind={{best}} --membind={{best}} {_PROGRAM}",
)


@check(
    "MEM-004",
    title="NUMA",
    causes=(FAR, MISPLACED),
    about="In a machine of several NUMA nodes host memory is near to some GPUs and far from others. Pinned"
    " memory is put on each node in turn and copied.",
    sources=["Linux kernel documentation, sysfs-bus-pci, numa_node; numactl(8)"],
    follows=(*NOTHING_RUNS, "MEM-003"),
    systems=("links",),
)
def numa(view: SnapshotView) -> Verdicts:
    details: list[str] = []

    def judge(one: Measured) -> Verdicts:
        nodes = nodes_of(one)
        device = one.seen.trial("device")
        if device is None or "nodes" not in device.evidence:
            yield one.why_not("device")
            return
        if number(device, "nodes") < 2:
            raise Skip("not applicable: the host has one NUMA node")
        if len(nodes) < 2:
            asked = trials_named(one.seen, "node ")
            yield one.why_not(asked[0].name if asked else "device")
            return
        own = device.evidence.get("node")
        best = max(nodes, key=lambda node: nodes[node])
        worst = min(nodes, key=lambda node: nodes[node])
        if not isinstance(own, int) or own not in nodes:
            alike = nodes[worst] > _NEAR * nodes[best]
            details.append(
                f"{one.called}: "
                + ("all nodes alike" if alike else f"node {best} is near by its speed")
            )
        elif nodes[own] < _NEAR * nodes[best]:
            yield _misplaced(one, own, best, nodes)
        elif nodes[worst] < _FAR * nodes[own]:
            yield _far(one, own, worst, nodes)
        else:
            far = [rate for node, rate in nodes.items() if node != own]
            details.append(
                f"{one.called}: near (node {own}) {gb_s(nodes[own])}, far {spread_of(far)}"
            )

    yield from each_gpu_run(view, "links", judge)
    if details:
        yield Passed("; ".join(details))


def nodes_of(one: Measured) -> dict[int, float]:
    """{NUMA node: GB/s of the slower way between its memory and the GPU}, of those that were measured."""
    found: dict[int, float] = {}
    for trial in trials_named(one.seen, "node "):
        match = _NODE.fullmatch(trial.name)
        rate = one.rate(trial.name)
        if match and rate:
            node = int(match[1])
            found[node] = min(rate, found.get(node, rate))
    return found


def _far(one: Measured, own: int, worst: int, nodes: dict[int, float]) -> Finding:
    return one.found(
        FAR,
        trials_named(one.seen, "node "),
        worst=worst,
        far=gb_s(nodes[worst]),
        own=own,
        near=gb_s(nodes[own]),
        times=nodes[own] / nodes[worst],
    )


def _misplaced(one: Measured, own: int, best: int, nodes: dict[int, float]) -> Finding:
    rates = ", ".join(f"node {node} {gb_s(rate)}" for node, rate in sorted(nodes.items()))
    table = Evidence("machine.pci.devices", f"numa_node {own}", "/sys")
    trials = trials_named(one.seen, "node ")
    return one.found(MISPLACED, trials, [table], own=own, best=best, rates=rates)
