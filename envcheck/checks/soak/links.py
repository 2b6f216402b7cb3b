"""Whether the links held while a soak ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...data.products import product
from ...data.soak_limits import soak_limit
from ...facts.missing import NotKnown, Skip
from ...facts.soak import SoakGpu, SoakMinute
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..gpu.link import fastest_of, in_virtual_machine, lanes_of, pci_device, widest_of
from ..registry import check
from .common import Soaked, each_soaked, most, whole_minutes
from .errors import grown


class LinkUnderLoad(NamedTuple):
    """A PCIe link under load: the best that was seen, and the worst after it; None where neither was."""

    lanes: int | None
    fewest: int | None
    generation: int | None
    slowest: int | None


def under_load(gpu: SoakGpu) -> LinkUnderLoad:
    """Without the first minute, in which the GPU was idle at first: an idle GPU slows its link down."""
    minutes = [one for one in whole_minutes(gpu) if one.products][1:]
    before = gpu.errors_before.get("pcie_width")
    return LinkUnderLoad(
        _whole(most([before, *(one.pcie_width for one in minutes)])),
        _least(minutes, "pcie_width"),
        _whole(most(one.pcie_gen for one in minutes)),
        _least(minutes, "pcie_gen"),
    )


def _least(minutes: list[SoakMinute], name: str) -> int | None:
    found = [value for one in minutes if (value := getattr(one, name)) is not None]
    return min(found, default=None)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


@check(
    "SOAK-005",
    title="The PCIe links held",
    problem="had PCIe errors under load",
    about="A link that lost lanes or fell to a lower generation while the soak ran is a failure: contacts"
    " that move as a board warms up show so. One that had fewer lanes or a lower generation under load all"
    " the time than card and slot have (the product's own where the machine does not say it) is a warning;"
    " the first minute does not count, since an idle GPU slows its link down. Replays of PCIe packets at"
    " more than one a minute are a warning, and so is any NVLink error.",
    sources=("nvml.h, nvmlDeviceGetPcieReplayCounter", "envcheck/data/soak_limits.csv"),
    follows=("GPU-010", "GPU-018"),
)
def links_held(view: SnapshotView) -> Iterator[Verdict]:
    return each_soaked(view, lambda one: _links(view, one))


def _links(view: SnapshotView, one: Soaked) -> Iterator[Verdict]:
    one.need_samples("the PCIe link")
    link = under_load(one.gpu)
    hours = sum(minute.seconds for minute in one.gpu.minutes) / 3600.0
    replays, errors = grown(one.gpu, "pcie_replays"), grown(one.gpu, "nvlink_errors")
    if link.fewest is None or link.slowest is None:
        raise Skip("the PCIe link under load: no minute after the first one shows it")
    if link.lanes and link.fewest < link.lanes:
        told = f"the PCIe link fell from {link.lanes} to {link.fewest} lanes"
        yield _link(view, one, "fail", told, "minutes", f"x{link.fewest}")
    elif link.generation and link.slowest < link.generation:
        told = f"the PCIe link fell from generation {link.generation} to {link.slowest}"
        yield _link(view, one, "fail", told, "minutes", f"generation {link.slowest}")
    elif hours and replays > max(1.0, hours) * soak_limit("replays_per_hour"):
        told = f"{replays:,.0f} packets on the PCIe link were sent again"
        yield _link(view, one, "warn", told, "errors_after.pcie_replays", f"{replays:g} more")
    elif errors:
        told = f"{errors:,.0f} NVLink errors came"
        yield _link(view, one, "warn", told, "errors_after.nvlink_errors", f"{errors:g} more")
    else:
        yield from _as_it_should_be(view, one, link.fewest, link.slowest)


def _as_it_should_be(
    view: SnapshotView, one: Soaked, lanes: int, generation: int
) -> Iterator[Verdict]:
    most_lanes, most_generation = _possible(view, one)
    short = [f"x{lanes} of x{most_lanes}"] if most_lanes and lanes < most_lanes else []
    if most_generation and generation < most_generation:
        short.append(f"generation {generation} of {most_generation}")
    if short:
        told = f"the PCIe link ran at {' and '.join(short)}"
        yield _link(view, one, "warn", told, "minutes", f"generation {generation} x{lanes}")
    elif not most_lanes or not most_generation:
        raise NotKnown("what the PCIe link of this GPU and its slot can do")
    else:
        yield Passed(f"generation {generation} x{lanes}")


def _possible(view: SnapshotView, one: Soaked) -> tuple[int | None, int | None]:
    """(lanes, generation) of card and slot; of the product where the machine does not say it."""
    sold = product(one.subject.name)
    gpu = one.listed(view)
    if gpu is not None and in_virtual_machine(view, gpu):
        raise Skip("the PCIe link: a virtual machine does not see the slot that the GPU is in")
    slot = None if gpu is None else pci_device(view, gpu)
    lanes = None if gpu is None else widest_of(lanes_of(gpu, slot), slot)
    generation = None if gpu is None else fastest_of(gpu, slot)
    return lanes or (sold and sold.pcie_lanes), generation or (sold and sold.pcie_generation)


def _link(
    view: SnapshotView, one: Soaked, level: str, told: str, field: str, value: str
) -> Finding:
    return Finding(
        "fail" if level == "fail" else "warn",
        f"Under load {told}: data arrives late, or at a part of the link's speed.",
        [one.subject],
        [one.evidence(view, field, value)],
        Remedy(
            "Seat the board and its riser or cable anew, clean the contacts, and repeat the soak.",
            [
                f"nvidia-smi -q -d PERFORMANCE -i {one.selected}",
                f"nvidia-smi --query-gpu=pcie.link.width.current,pcie.link.gen.current"
                f" --format=csv -i {one.selected}",
            ],
        ),
        told,
    )
