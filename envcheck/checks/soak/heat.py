"""Heat, of the chip and of the memory, and power while a soak ran."""

from __future__ import annotations

from ...data.soak_limits import soak_limit
from ...findings.model import Level
from ..gpu.heat import COOLING, SHOW_HEAT, WARM_C, memory_limit
from ..reading import CouldNotRun, NotKnown, Skip, SnapshotView, known
from ..verdicts import Cause, Passed, Verdicts
from .common import Soaked, most, soak_check, throttled
from .pace import LOOK


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


@soak_check(
    "SOAK-009",
    title="Neither heat nor the power brake held the clocks down",
    causes=_HELD.values(),
    about="NVML samples during a soak say why clocks are held down: the hardware's thermal slowdown or the"
    " power brake in one sample of a hundred is a failure.",
    sources=("nvml.h, nvmlClocksEventReason*", "envcheck/data/soak_limits.csv"),
    follows=("GPU-007", "GPU-008"),
)
def not_throttled(view: SnapshotView, one: Soaked) -> Verdicts:
    one.need_samples("the reasons for held-down clocks")
    shares = throttled(one.gpu)
    if shares is None:
        raise CouldNotRun("the reasons for held-down clocks: NVML did not give them")
    limit = soak_limit("throttled_share")
    held = next((name for name in _HELD if shares.get(name, 0.0) >= limit), None)
    if held is None:
        yield Passed("")
    else:
        shown = one.evidence(view, "minutes", f"{held}: {shares[held]:.1%} of the samples")
        yield one.found(_HELD[held], [shown], share=shares[held])


_MEMORY = (
    "had memory at {celsius:.0f} °C under load",
    "Under load the memory was at {celsius:.0f} °C, and its limit is {limit} °C: from there on it is slowed"
    " down, and memory errors become more likely.",
    COOLING,
    SHOW_HEAT,
)
MEMORY_HOT = Cause("memory-too-hot-under-load", "fail", *_MEMORY)
MEMORY_WARM = Cause("memory-nearly-too-hot-under-load", "warn", *_MEMORY)


@soak_check(
    "SOAK-010",
    title="The memory stayed cool enough",
    causes=(MEMORY_HOT, MEMORY_WARM),
    about="The highest temperature of the memory (HBM, GDDR) in the samples of a soak, compared with the"
    " board's own limit, or with what is known of the generation's memory. At the limit is a failure,"
    " within 5 degrees of the board's own a warning.",
    sources=("nvml.h, NVML_FI_DEV_MEMORY_TEMP", "envcheck/data: memory_temperatures.csv"),
    follows=("GPU-030",),
)
def memory_stayed_cool(view: SnapshotView, one: Soaked) -> Verdicts:
    one.need_samples("the memory's temperature")
    hottest = most(minute.memory_temperature_c for minute in one.gpu.minutes)
    if hottest is None:
        raise Skip("NVML has no temperature of this GPU's memory")
    listed = one.listed(view)
    limit = None if listed is None else memory_limit(listed)
    if listed is None or limit is None:
        raise NotKnown(f"how hot this board's memory may be ({hottest:.0f} °C were seen)")
    own = known(listed.memory_temperature_max_c) is not None
    if hottest < limit - (WARM_C if own else 0):
        yield Passed(f"below {limit} °C")
        return
    reached = hottest >= limit
    yield one.found(
        MEMORY_HOT if reached else MEMORY_WARM,
        [one.evidence(view, "minutes", f"{hottest:.0f} °C")],
        celsius=hottest,
        limit=limit,
    )
