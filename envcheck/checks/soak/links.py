"""Whether the links held while a soak ran."""

from __future__ import annotations

from ...data import numbers
from ..reading import Skip, SnapshotView
from ..verdicts import Finding, fail
from .common import Soaked, soak_check, whole_minutes

FELL = fail(
    "link-fell-under-load",
    "{what}",
    "Under load {what}: data arrives late, or at a part of the link's speed.",
    "Reseat the board and its riser or cable, clean the contacts, and repeat the soak.",
    "nvidia-smi -q -d PERFORMANCE -i {gpu}",
    "nvidia-smi --query-gpu=pcie.link.width.current,pcie.link.gen.current --format=csv -i {gpu}",
)
RETRIES = FELL.variant("link-errors-under-load", severity="warn")


@soak_check(
    "SOAK-005",
    title="The PCIe links kept lanes and generation",
    causes=(FELL, RETRIES),
    about="A link that lost lanes or fell to a lower generation during the soak is a failure: a contact may"
    " move as a board warms up. More than one PCIe replay a minute and any NVLink error are warnings.",
    sources=("nvml.h, nvmlDeviceGetPcieReplayCounter", "envcheck/data/soak_limits.csv"),
    follows=("GPU-010", "GPU-018"),
)
def links_held(view: SnapshotView, one: Soaked) -> Finding | str:
    one.need_samples("the PCIe link")
    # Without the first minute: an idle GPU slows its link down.
    minutes = [minute for minute in whole_minutes(one.gpu) if minute.products][1:]
    widths = [minute.pcie_width for minute in minutes if minute.pcie_width is not None]
    generations = [minute.pcie_gen for minute in minutes if minute.pcie_gen is not None]
    if not widths or not generations:
        raise Skip("the PCIe link under load: no minute after the first one shows it")
    lanes, generation = min(widths), min(generations)
    widest = max([int(one.gpu.errors_before.get("pcie_width", 0)), *widths])
    hours = sum(minute.seconds for minute in one.gpu.minutes) / 3600.0
    replays, errors = one.grown("pcie_replays"), one.grown("nvlink_errors")
    speed = f"generation {generation} x{lanes}"
    cause, field, shown = FELL, "minutes", speed
    if lanes < widest:
        what = f"the PCIe link fell from {widest} to {lanes} lanes"
    elif generation < max(generations):
        what = f"the PCIe link fell from generation {max(generations)} to {generation}"
    elif hours and replays > max(1.0, hours) * numbers("soak_limits")["replays_per_hour"]:
        cause, what = RETRIES, f"{replays:,.0f} packets on the PCIe link were sent again"
        field, shown = "errors_after.pcie_replays", f"{replays:g} more"
    elif errors:
        cause, what = RETRIES, f"{errors:,.0f} NVLink errors came"
        field, shown = "errors_after.nvlink_errors", f"{errors:g} more"
    else:
        return speed
    return one.found(cause, one.evidence(view, field, shown), what=what)
