"""Heat, of the chip and of the memory, and power while a soak ran."""

from __future__ import annotations

from ...data import numbers
from ..declared import declared_causes
from ..gpu.heat import WARM_C, memory_limit
from ..reading import CouldNotRun, NotKnown, Skip, SnapshotView, known
from ..verdicts import Cause, Finding, Level
from .common import Soaked, soak_check
from .pace import LOOK

CAUSE = declared_causes(__name__)


def _held(key: str, severity: Level, what: str, check: str) -> Cause:
    return Cause(
        key,
        severity,
        f"was throttled under load ({what})",
        f"Under load {what} in {{share:.0%}} of the samples: training runs below the GPU's speed.",
        f"Check {check}; then repeat the soak.",
        (LOOK,),
    )


_SUPPLY = "power supply, its cables and the rack's limits"
# By the reason for held-down clocks, the worst first.
_HELD = {
    "hw_thermal_slowdown": _held(
        "throttled-by-heat", "fail", "the hardware held its clocks down because of heat", "cooling"
    ),
    "hw_power_brake_slowdown": _held(
        "throttled-by-power-brake", "fail", "the power brake held its clocks down", _SUPPLY
    ),
    "sw_thermal_slowdown": _held(
        "slowed-by-heat", "warn", "the driver held its clocks down because of heat", "cooling"
    ),
    "hw_slowdown": _held(
        "throttled-by-hardware", "warn", "the hardware held its clocks down", "cooling"
    ),
}


@soak_check("SOAK-009", causes=_HELD.values())
def not_throttled(view: SnapshotView, one: Soaked) -> Finding | str:
    what = "the reasons for held-down clocks"
    one.need_samples(what)
    read = sum(minute.reason_samples for minute in one.gpu.minutes)
    if not read:
        raise CouldNotRun(f"{what}: NVML did not give them")
    for reason, cause in _HELD.items():
        share = sum(
            minute.throttled.get(reason, 0.0) * minute.reason_samples for minute in one.gpu.minutes
        )
        share /= read
        if share >= numbers("soak_limits")["throttled_share"]:
            shown = one.evidence(view, "minutes", f"{reason}: {share:.1%} of the samples")
            return one.found(cause, shown, share=share)
    return ""


@soak_check("SOAK-010")
def memory_stayed_cool(view: SnapshotView, one: Soaked) -> Finding | str:
    one.need_samples("the memory's temperature")
    seen = [minute.memory_temperature_c for minute in one.gpu.minutes]
    hottest = max((celsius for celsius in seen if celsius is not None), default=None)
    if hottest is None:
        raise Skip("NVML has no temperature of this GPU's memory")
    listed = one.listed(view)
    limit = None if listed is None else memory_limit(listed)
    if listed is None or limit is None:
        raise NotKnown(f"how hot this board's memory may be ({hottest:.0f} °C were seen)")
    own = known(listed.memory_temperature_max_c) is not None
    if hottest < limit - (WARM_C if own else 0):
        return f"below {limit} °C"
    cause = (
        CAUSE["memory-too-hot-under-load"]
        if hottest >= limit
        else CAUSE["memory-nearly-too-hot-under-load"]
    )
    shown = one.evidence(view, "minutes", f"{hottest:.0f} °C")
    return one.found(cause, shown, celsius=hottest, limit=limit)
