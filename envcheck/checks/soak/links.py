"""Whether the links held while a soak ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...data.products import product
from ...data.soak_limits import soak_limit
from ...facts.missing import NotKnown, Skip
from ...facts.soak import SoakGpu, SoakMinute
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ..gpu.link import fastest_of, in_virtual_machine, lanes_of, pci_device, widest_of
from .common import Soaked, most, soak_check, whole_minutes
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


_EFFECT = "Under load {what}: data arrives late, or at a part of the link's speed."
_RESEAT = (
    "Reseat the board and its riser or cable, clean the contacts, and repeat the soak.",
    (
        "nvidia-smi -q -d PERFORMANCE -i {gpu}",
        "nvidia-smi --query-gpu=pcie.link.width.current,pcie.link.gen.current --format=csv -i {gpu}",
    ),
)
FELL = Cause("link-fell-under-load", "fail", "{what}", _EFFECT, *_RESEAT)
RETRIES = Cause("link-errors-under-load", "warn", "{what}", _EFFECT, *_RESEAT)
LOW = Cause("link-low-under-load", "warn", "{what}", _EFFECT, *_RESEAT)


@soak_check(
    "SOAK-005",
    title="The PCIe links held",
    causes=(FELL, RETRIES, LOW),
    about="A link that lost lanes or fell to a lower generation during the soak is a failure: contacts that"
    " move as a board warms up. One that had less than card and slot have all the time is a warning; the"
    " first minute does not count, since an idle GPU slows its link down. So are replays of PCIe packets"
    " at more than one a minute, and any NVLink error.",
    sources=("nvml.h, nvmlDeviceGetPcieReplayCounter", "envcheck/data/soak_limits.csv"),
    follows=("GPU-010", "GPU-018"),
)
def links_held(view: SnapshotView, one: Soaked) -> Iterator[Verdict]:
    one.need_samples("the PCIe link")
    link = under_load(one.gpu)
    hours = sum(minute.seconds for minute in one.gpu.minutes) / 3600.0
    replays, errors = grown(one.gpu, "pcie_replays"), grown(one.gpu, "nvlink_errors")
    if link.fewest is None or link.slowest is None:
        raise Skip("the PCIe link under load: no minute after the first one shows it")
    lanes, generation = link.fewest, link.slowest
    speed = f"generation {generation} x{lanes}"
    cause, what, field, shown = FELL, "", "minutes", speed
    if link.lanes and lanes < link.lanes:
        what = f"the PCIe link fell from {link.lanes} to {lanes} lanes"
    elif link.generation and generation < link.generation:
        what = f"the PCIe link fell from generation {link.generation} to {generation}"
    elif hours and replays > max(1.0, hours) * soak_limit("replays_per_hour"):
        cause, what = RETRIES, f"{replays:,.0f} packets on the PCIe link were sent again"
        field, shown = "errors_after.pcie_replays", f"{replays:g} more"
    elif errors:
        cause, what = RETRIES, f"{errors:,.0f} NVLink errors came"
        field, shown = "errors_after.nvlink_errors", f"{errors:g} more"
    else:
        cause, what = LOW, _short(view, one, lanes, generation)
    if what:
        yield one.found(cause, [one.evidence(view, field, shown)], what=what)
    else:
        yield Passed(speed)


def _short(view: SnapshotView, one: Soaked, lanes: int, generation: int) -> str:
    """What the link lacks of what card and slot have; raises CannotJudge if that is not known."""
    most_lanes, most_generation = _possible(view, one)
    short = [f"x{lanes} of x{most_lanes}"] if most_lanes and lanes < most_lanes else []
    if most_generation and generation < most_generation:
        short.append(f"generation {generation} of {most_generation}")
    if not short and not (most_lanes and most_generation):
        raise NotKnown("what the PCIe link of this GPU and its slot can do")
    return f"the PCIe link ran at {' and '.join(short)}" if short else ""


def _possible(view: SnapshotView, one: Soaked) -> tuple[int | None, int | None]:
    """(lanes, generation) of card and slot; of the product where the machine does not say it."""
    sold = product(one.subject.name)
    gpu = one.listed(view)
    if gpu is not None and in_virtual_machine(view, gpu):
        raise Skip("the PCIe link: a virtual machine does not see the slot that the GPU is in")
    slot = None if gpu is None else pci_device(view, gpu)
    lanes = None if gpu is None else widest_of(lanes_of(gpu, slot), slot)
    generation = None if gpu is None else fastest_of(gpu, slot)
    if sold is None:
        return lanes, generation
    return lanes or sold.pcie_lanes, generation or sold.pcie_generation
