"""Checks on the board itself: its InfoROM, its external power and its power limit."""

from __future__ import annotations

from ..declared import declared_causes
from ..driver_state import service
from ..gpus import CORRUPTED_INFOROM, errors_of, found, gpu_check
from ..reading import Gpu, SnapshotView, fact, known, need
from ..verdicts import Passed, Verdicts

CAUSE = declared_causes(__name__)

_LOWERED = 0.99  # of the default limit: rounding and the driver's own steps take less than the rest


@gpu_check("GPU-032")
def inforom_is_whole(view: SnapshotView, gpu: Gpu) -> Verdicts:
    corrupt = [name for name, code in errors_of(gpu).items() if code == CORRUPTED_INFOROM]
    if known(gpu.inforom_valid) is False or corrupt:
        yield found(view, CAUSE["inforom-corrupt"], gpu, " ".join(corrupt[:3]) or "inforom_valid")
        return
    if not known(gpu.inforom_valid):
        need(gpu.inforom, "the InfoROM")
    yield Passed("the InfoROM is readable")


@gpu_check("GPU-009")
def power_limit_is_default(view: SnapshotView, gpu: Gpu) -> Verdicts:
    limit = need(gpu.power_limit_w, "the power limit")
    default = need(gpu.power_default_limit_w, "the default power limit")
    default = min(default, known(gpu.power_max_limit_w) or default)  # nothing above that can be set
    fields = "power_limit_w power_default_limit_w"
    lowered, laptop = limit < default * _LOWERED, "Laptop" in (known(gpu.name) or "")
    if lowered and (not laptop or fact(view.machine.host, "on_battery")):
        cause = CAUSE["power-limit-of-the-battery"] if laptop else CAUSE["power-limit-lowered"]
        yield found(view, cause, gpu, fields, limit=limit, default=default)
    elif laptop and _waits_for_boost(view, gpu, limit):
        fields = "power_limit_w power_max_limit_w clock_event_reasons"
        yield found(
            view,
            CAUSE["dynamic-boost-off"],
            gpu,
            fields,
            limit=limit,
            most=known(gpu.power_max_limit_w),
        )
    else:
        yield Passed("no lower than the default")


def _waits_for_boost(view: SnapshotView, gpu: Gpu, limit: float) -> bool:
    """Whether nvidia-powerd would raise the limit that holds the GPU back, if it ran."""
    daemon = service(view, "nvidia-powerd")
    stopped = daemon is not None and known(daemon.installed) and known(daemon.running) is False
    held = "sw_power_cap" in (known(gpu.clock_event_reasons) or [])
    most = known(gpu.power_max_limit_w) or 0.0
    return bool(stopped and held and most > limit)
