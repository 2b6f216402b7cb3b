"""Heat, of the chip and of the memory, and power while a soak ran."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.soak_limits import soak_limit
from ...facts.base import known
from ...facts.missing import CouldNotRun, NotKnown, Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..gpu.heat import COOLING, WARM_C, memory_limit
from ..registry import check
from .common import Soaked, each_soaked, most, throttled
from .pace import LOOK

_HELD = (
    ("hw_thermal_slowdown", "fail", "the hardware held its clocks down because of heat"),
    ("hw_power_brake_slowdown", "fail", "the power brake held its clocks down"),
    ("sw_thermal_slowdown", "warn", "the driver held its clocks down because of heat"),
    ("hw_slowdown", "warn", "the hardware held its clocks down"),
)


@check(
    "SOAK-009",
    title="Neither heat nor power brake",
    problem="was throttled under load",
    about="NVML's reasons for held-down clocks in the samples of a soak. The power cap is what a soak is to"
    " reach. The hardware's thermal slowdown or the power brake in one sample of a hundred is a failure, the"
    " driver's thermal slowdown or a hardware slowdown without a reason a warning.",
    sources=("nvml.h, nvmlClocksEventReason*", "envcheck/data/soak_limits.csv"),
    follows=("GPU-007", "GPU-008"),
)
def not_throttled(view: SnapshotView) -> Iterator[Verdict]:
    return each_soaked(view, lambda one: _throttled(view, one))


def _throttled(view: SnapshotView, one: Soaked) -> Iterator[Verdict]:
    one.need_samples("the reasons for held-down clocks")
    shares = throttled(one.gpu)
    if shares is None:
        raise CouldNotRun("the reasons for held-down clocks: NVML did not give them")
    limit = soak_limit("throttled_share")
    held = [(found, name) for found in _HELD if shares.get(name := found[0], 0.0) >= limit]
    for (_name, level, words), name in held[:1]:
        cool = "power supply, its cables and the rack's limits" if "brake" in name else "cooling"
        yield Finding(
            "fail" if level == "fail" else "warn",
            f"Under load {words} in {shares[name]:.0%} of the samples: training runs below the GPU's speed.",
            [one.subject],
            [one.evidence(view, "minutes", f"{name}: {shares[name]:.1%} of the samples")],
            Remedy(f"Look at {cool}; then repeat the soak.", [LOOK.format(one.selected)]),
            f"was throttled under load ({words})",
        )
    if not held:
        yield Passed("")


@check(
    "SOAK-010",
    title="The memory stayed cool enough",
    problem="had memory that was too hot under load",
    about="The highest temperature of the memory (HBM, GDDR) in the samples of a soak, held against the"
    " board's own limit where the driver gives it, else against what is known of the generation's memory."
    " At the limit is a failure, within 5 degrees of the board's own a warning.",
    sources=("nvml.h, NVML_FI_DEV_MEMORY_TEMP", "envcheck/data: memory_temperatures.csv"),
    follows=("GPU-030",),
)
def memory_stayed_cool(view: SnapshotView) -> Iterator[Verdict]:
    return each_soaked(view, lambda one: _memory_heat(view, one))


def _memory_heat(view: SnapshotView, one: Soaked) -> Iterator[Verdict]:
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
    yield Finding(
        "fail" if reached else "warn",
        f"Under load the memory was at {hottest:.0f} °C, and its limit is {limit} °C: from there on it is"
        " slowed down, and memory errors become more likely.",
        [one.subject],
        [one.evidence(view, "minutes", f"{hottest:.0f} °C")],
        COOLING,
        f"had memory at {hottest:.0f} °C under load",
    )


@check(
    "SOAK-011",
    title="The load reached the power limit",
    problem="never reached its power limit under load",
    about="A soak shows what cooling and power supply can do only at the board's power limit: NVML names the"
    " power cap as the reason for held-down clocks, or a minute's mean power is within 5 % of the limit."
    " Where cuBLAS computed the products, a GPU that was never there is a warning. envcheck's own product"
    " does not use the fastest instructions of Hopper and later (wgmma, tcgen05), so a limit that it did not"
    " reach is not judged.",
    sources=("nvml.h, nvmlClocksEventReasonSwPowerCap", "envcheck/data/soak_limits.csv"),
    follows=("SOAK-009",),
)
def power_was_reached(view: SnapshotView) -> Iterator[Verdict]:
    return each_soaked(view, lambda one: _power(view, one))


def _power(view: SnapshotView, one: Soaked) -> Iterator[Verdict]:
    one.need_samples("power and its limit")
    limit = one.gpu.errors_after.get("power_limit_w")
    watts = most(minute.power_w for minute in one.gpu.minutes)
    capped = (throttled(one.gpu) or {}).get("sw_power_cap", 0.0)
    if capped >= soak_limit("throttled_share"):
        yield Passed(f"at the power limit in {capped:.0%} of the samples")
        return
    if watts is None or limit is None or limit <= 0:
        raise Skip("NVML has no power, or no limit of it, for this GPU")
    told = f"{watts:.0f} of {limit:.0f} W"
    if watts >= soak_limit("power_reached") * limit:
        yield Passed(told)
        return
    if one.gpu.level != "cublas":
        raise Skip(
            f"the power limit was not reached ({told}), which envcheck's own product need not do:"
            " --target with an environment that has cuBLAS loads the GPU more"
        )
    yield Finding(
        "warn",
        f"The load never reached the power limit ({told}): the soak says nothing of cooling and power supply"
        " at full load, and something other than the power limit holds the GPU back.",
        [one.subject],
        [one.evidence(view, "errors_after.power_limit_w", f"{limit:g}")],
        Remedy(
            "Compare its clocks and its rate with those of other GPUs of its name.",
            [LOOK.format(one.selected)],
        ),
        f"never reached its power limit under load ({told})",
    )
