"""Whether the links held while a soak ran."""

from __future__ import annotations

from ...data import numbers
from ..declared import declared_causes
from ..reading import Skip, SnapshotView
from ..verdicts import Finding
from .common import Soaked, soak_check, whole_minutes

CAUSE = declared_causes(__name__)


@soak_check("SOAK-005")
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
    cause, field, shown = CAUSE["link-fell-under-load"], "minutes", speed
    if lanes < widest:
        what = f"the PCIe link fell from {widest} to {lanes} lanes"
    elif generation < max(generations):
        what = f"the PCIe link fell from generation {max(generations)} to {generation}"
    elif hours and replays > max(1.0, hours) * numbers("soak_limits")["replays_per_hour"]:
        cause, what = (
            CAUSE["link-errors-under-load"],
            f"{replays:,.0f} packets on the PCIe link were sent again",
        )
        field, shown = "errors_after.pcie_replays", f"{replays:g} more"
    elif errors:
        cause, what = CAUSE["link-errors-under-load"], f"{errors:,.0f} NVLink errors came"
        field, shown = "errors_after.nvlink_errors", f"{errors:g} more"
    else:
        return speed
    return one.found(cause, one.evidence(view, field, shown), what=what)
