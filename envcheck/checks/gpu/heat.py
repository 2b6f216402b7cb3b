"""Checks on heat, and on what holds the clocks back now or held them back since the driver was loaded."""

from __future__ import annotations

from ...data import numbers
from ..declared import declared_causes
from ..gpus import found, gpu_check, need_any, plural
from ..reading import Gpu, NotKnown, Skip, SnapshotView, known, need
from ..verdicts import Passed, Verdicts, fail, warn

CAUSE = declared_causes(__name__)

WARM_C = 5  # a GPU counts as hot from so many degrees below its slowdown threshold

COOLING = (
    "Check fans, airflow, dust and the room's temperature; passive boards need the server's fans."
)


@gpu_check("GPU-007")
def gpus_are_cool(view: SnapshotView, gpu: Gpu) -> Verdicts:
    now, margin = known(gpu.temperature_c), _degrees_left(gpu)
    fields = "temperature_c temperature_slowdown_c temperature_margin_c"
    at = "" if now is None else f" ({now} °C)"
    if margin is None:
        need(gpu.temperature_c, "the temperature")
        need(gpu.temperature_margin_c, "the temperature's threshold")
    if margin is not None and margin <= 0:
        yield found(view, CAUSE["too-hot"], gpu, fields, at=at)
    elif margin is not None and margin <= WARM_C:
        yield found(
            view, CAUSE["nearly-too-hot"], gpu, fields, at=at, degrees=plural(margin, "degree")
        )
    else:
        yield Passed("below the slowdown temperature")


def _degrees_left(gpu: Gpu) -> int | None:
    """Degrees to the slowdown temperature; None if the driver gives neither them nor it."""
    now, threshold = known(gpu.temperature_c), known(gpu.temperature_slowdown_c)
    gap = known(gpu.temperature_margin_c)
    return threshold - now if gap is None and now is not None and threshold is not None else gap


def memory_limit(gpu: Gpu) -> float | None:
    """The temperature at which the memory is slowed down: the board's own, else its generation's."""
    own = known(gpu.memory_temperature_max_c)
    limits = numbers("memory_temperatures")
    return limits.get(known(gpu.architecture) or "") if own is None else own


@gpu_check("GPU-030")
def memory_is_cool(view: SnapshotView, gpu: Gpu) -> Verdicts:
    now = need(gpu.memory_temperature_c, "the memory's temperature")
    limit = memory_limit(gpu)
    if limit is None:
        raise Skip("how hot this board's memory may be: not known")
    if now >= limit:
        fields = "memory_temperature_c memory_temperature_max_c temperature_c"
        yield found(view, CAUSE["memory-too-hot"], gpu, fields, celsius=now, limit=limit)
    else:
        yield Passed(f"below {limit} °C")


# Far from its own limit nothing is hot: so many degrees below the slowdown temperature.
_COOL_C = 20
_IMPOSSIBLE = 2  # times the highest limit: peaks of milliseconds are less
# By clock-event reason.
THROTTLED = {
    "hw_thermal_slowdown": CAUSE["throttled-by-heat"],
    "hw_power_brake_slowdown": fail(
        "throttled-by-power-brake",
        "is throttled by the power brake",
        "The machine's power brake holds the clocks down: its power supply or rack asks the GPU to slow down,"
        " and training runs at a fraction of the GPU's speed.",
        "Look at the power supplies, their redundancy and cables, and at the power limits that the server's"
        " management controller sets.",
        "nvidia-smi -q -d PERFORMANCE,POWER",
        "sudo ipmitool sdr type 'Power Supply'",
    ),
    "hw_slowdown": warn(
        "throttled-by-hardware",
        "is throttled by its hardware",
        "The hardware holds the clocks down, and does not say whether for heat or power: training is slower.",
        "Check the reasons under load, and check cooling and power.",
        "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
    ),
    "sw_thermal_slowdown": CAUSE["throttled-by-heat"].variant(
        "slowed-by-heat",
        severity="warn",
        sentence="The driver holds the clocks down to keep the GPU or its memory below the temperature"
        " allowed: training runs slower than it could.",
    ),
}
# Clock-event reason: its counter, the microseconds from which on it counts, what slowed the GPU down.
# Slowdown by software is a few degrees' work and comes and goes.
_COUNTERS = {
    "hw_thermal_slowdown": ("slowdown_hw_thermal_us", 1),
    "hw_power_brake_slowdown": ("slowdown_hw_power_brake_us", 1),
    "sw_thermal_slowdown": ("slowdown_sw_thermal_us", 60_000_000),
}
_NORMAL = {"gpu_idle", "sw_power_cap", "board_limit", "reliability", "sync_boost"}
_NORMAL |= {"applications_clocks_setting", "display_clocks_setting"}


@gpu_check("GPU-008", causes=THROTTLED.values())
def clocks_are_free(view: SnapshotView, gpu: Gpu) -> Verdicts:
    active = set(need(gpu.clock_event_reasons, "the clock-event reasons"))
    draw, most = known(gpu.power_draw_w) or 0, known(gpu.power_max_limit_w)
    if most and draw > _IMPOSSIBLE * most and "sw_power_cap" in active:
        fields = "power_draw_w power_max_limit_w clock_event_reasons clock_sm_mhz clock_sm_max_mhz"
        mhz = known(gpu.clock_sm_mhz)
        yield found(view, CAUSE["power-misread"], gpu, fields, draw=draw, most=most, mhz=mhz)
        return
    reasons = [reason for reason in THROTTLED if reason in active]
    if "hw_slowdown" in reasons and reasons[0] != "hw_slowdown":
        reasons.remove("hw_slowdown")  # one of the others is why
    if "hw_thermal_slowdown" in reasons and "sw_thermal_slowdown" in reasons:
        reasons.remove("sw_thermal_slowdown")  # the same heat
    if reasons == ["sw_thermal_slowdown"]:
        margin, now, limit = _degrees_left(gpu), known(gpu.memory_temperature_c), memory_limit(gpu)
        if margin is not None and margin <= 0:
            raise Skip("the GPU is too hot, and holds its clocks down for that (GPU-007)")
        if now is not None and limit is not None and now >= limit:
            raise Skip("its memory is too hot, and it holds the clocks down for that (GPU-030)")
    for reason in reasons:
        fields = "clock_event_reasons clock_sm_mhz clock_sm_max_mhz temperature_c power_draw_w"
        counter = _COUNTERS.get(reason, ("", 0))[0]
        margin, now = _degrees_left(gpu), known(gpu.temperature_c)
        if reason == "sw_thermal_slowdown" and now is not None and (margin or 0) >= _COOL_C:
            fields += " temperature_slowdown_c temperature_margin_c"
            yield found(view, CAUSE["slowed-while-cool"], gpu, fields, celsius=now, degrees=margin)
        else:
            yield found(view, THROTTLED[reason], gpu, f"{fields} {counter}")
    if others := sorted(active - _NORMAL - set(THROTTLED)):
        raise NotKnown(f"the clock-event reason {', '.join(others)}")
    if not reasons:
        yield Passed("no slowdown")


_PAST = {
    reason: cause.variant(
        f"was-{cause.key}",
        severity="warn",
        headline=cause.headline.replace("is ", "has been "),
        sentence=f"For {{time}} since the driver was loaded: {cause.sentence}",
    )
    for reason, cause in THROTTLED.items()
    if reason in _COUNTERS
}


@gpu_check("GPU-027", causes=_PAST.values())
def clocks_were_free(view: SnapshotView, gpu: Gpu) -> Verdicts:
    need_any(gpu, [counter for counter, _least in _COUNTERS.values()], "the time of slowdowns")
    active = known(gpu.clock_event_reasons) or []
    slowed = False
    for reason, (counter, least) in _COUNTERS.items():
        lasted = known(getattr(gpu, counter)) or 0
        if lasted >= least and reason not in active:
            slowed = True
            yield found(
                view,
                _PAST[reason],
                gpu,
                counter,
                time=f"{lasted / 1e6:,.4g} s",
                microseconds=lasted,
            )
    if not slowed:
        yield Passed("no slowdown since the driver was loaded")
