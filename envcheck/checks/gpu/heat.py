"""Checks on heat, and on what holds the clocks back now."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.memory_temperatures import memory_temperature_limit
from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import NotKnown, Skip
from ...facts.view import SnapshotView, need
from ...findings.model import Passed, Remedy, Verdict
from ..driver_state import NO_GPUS
from ..gpus import address_of, finding, judge_gpus
from ..registry import check
from .power import POWER_SUPPLY

FAN_C = 75  # fans that stand still on idle boards turn well below it
WARM_C = 5  # degrees below its slowdown threshold from which on a GPU counts as hot

COOLING = Remedy(
    "Look at fans, airflow, dust and the room's temperature; passively cooled boards need the server's"
    " own fans.",
    ["nvidia-smi -q -d TEMPERATURE", "nvidia-smi dmon -s pc"],
)


@check(
    "GPU-007",
    title="The GPUs are cool enough",
    problem="is too hot",
    about="At its slowdown temperature a GPU lowers its clocks by itself, a few degrees above that it"
    " switches off. Judged against the GPU's own threshold, as a temperature or as the degrees that are"
    " left (T.Limit), whichever the driver gives: at the threshold is a failure, within 5 degrees of it a"
    " warning. The same GPU idle is cooler: a healthy value without load says nothing about training. A fan"
    " that stands still on a hot board is a warning too.",
    sources=("nvidia-smi(1), Temperature", "NVSentinel#890; pytorch#153195"),
    follows=(*NO_GPUS, "GPU-008"),
)
def gpus_are_cool(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _fan_or_temperature(view, gpu))


def _fan_or_temperature(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    now = known(gpu.temperature_c)
    if known(gpu.fan_percent) == 0 and now is not None and now >= FAN_C:
        left = _degrees_left(gpu)
        yield finding(
            view,
            "fail" if left is not None and left <= 0 else "warn",
            gpu,
            f"The GPU is at {now} °C and its fan stands still: it will lower its clocks, and then switch"
            " off.",
            "fan_percent temperature_c",
            Remedy(
                "Look whether the fan turns and its cable is plugged in, and whether a program holds it at"
                " a speed of its own.",
                [f"nvidia-smi -q -d TEMPERATURE -i {address_of(gpu)}", "nvidia-settings -q fans"],
            ),
            "has a fan that stands still",
        )
    else:
        yield from _temperature(view, gpu)


def _degrees_left(gpu: Gpu) -> int | None:
    """Degrees to the slowdown temperature; None where the driver gives neither them nor it."""
    now, threshold = known(gpu.temperature_c), known(gpu.temperature_slowdown_c)
    left = known(gpu.temperature_margin_c)
    return threshold - now if left is None and now is not None and threshold is not None else left


def _temperature(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    now, left = known(gpu.temperature_c), _degrees_left(gpu)
    if left is None:
        need(gpu.temperature_c, "the temperature")
        left = need(gpu.temperature_margin_c, "the temperature's threshold")
    at = "" if now is None else f" ({now} °C)"
    if left <= 0:
        yield finding(
            view,
            "fail",
            gpu,
            f"The GPU is at or above its slowdown temperature{at}: it lowers its clocks, and training"
            " slows down with it.",
            "temperature_c temperature_slowdown_c temperature_margin_c",
            COOLING,
        )
    elif left <= WARM_C:
        yield finding(
            view,
            "warn",
            gpu,
            f"The GPU is {left} degree{'' if left == 1 else 's'} below its slowdown temperature{at}: under"
            " more load it will lower its clocks.",
            "temperature_c temperature_slowdown_c temperature_margin_c",
            COOLING,
            "is nearly too hot",
        )
    else:
        yield Passed("below the slowdown temperature")


def memory_limit(gpu: Gpu) -> int | None:
    """The temperature from which on the memory is slowed down: the board's own, else its generation's."""
    own = known(gpu.memory_temperature_max_c)
    return memory_temperature_limit(known(gpu.architecture) or "") if own is None else own


def memory_is_too_hot(gpu: Gpu) -> bool:
    now, limit = known(gpu.memory_temperature_c), memory_limit(gpu)
    return now is not None and limit is not None and now >= limit


@check(
    "GPU-030",
    title="The GPUs' memory is cool enough",
    problem="has memory that is too hot",
    about="The memory has a sensor and a limit of its own: above it the driver slows the memory down, and its"
    " errors become more, while the GPU itself may be cool. Judged against the board's own limit where the"
    " driver tells it; boards that tell it relative to T.Limit alone (since Hopper) against what is known"
    " of their memory. At the limit is a failure, within 5 degrees of the board's own a warning.",
    sources=(
        "nvidia-smi(1), Temperature",
        "nvml.h, NVML_TEMPERATURE_THRESHOLD_MEM_MAX",
        "envcheck/data: memory_temperatures.csv",
    ),
    follows=(*NO_GPUS, "GPU-007"),
)
def memory_is_cool(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _memory_temperature(view, gpu))


def _memory_temperature(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    now = need(gpu.memory_temperature_c, "the memory's temperature")
    limit = memory_limit(gpu)
    if limit is None:
        raise Skip("how hot this board's memory may be: not known")
    fields = "memory_temperature_c memory_temperature_max_c temperature_c"
    if now >= limit:
        yield finding(
            view,
            "fail",
            gpu,
            f"The memory is at {now} °C, and from {limit} °C on it is slowed down: training slows down"
            " with it,"
            " and memory errors become more likely.",
            fields,
            COOLING,
        )
    elif known(gpu.memory_temperature_max_c) is not None and limit - now <= WARM_C:
        left = limit - now
        yield finding(
            view,
            "warn",
            gpu,
            f"The memory is {left} degree{'' if left == 1 else 's'} below its limit ({now} of {limit} °C):"
            " under"
            " more load it will be slowed down.",
            fields,
            COOLING,
            "has memory that is nearly too hot",
        )
    else:
        yield Passed(f"below {limit} °C")


# Clock-event reason: (level, message, remedy); and those that are normal, the power cap at full load too.
_REASONS = {
    "hw_thermal_slowdown": (
        "fail",
        "The hardware holds the clocks down because of heat (half or less): training runs at a fraction of"
        " the GPU's speed.",
        COOLING,
    ),
    "hw_power_brake_slowdown": (
        "fail",
        "The machine's power brake holds the clocks down: its power supply or rack asks the GPU to slow"
        " down, and training runs at a fraction of the GPU's speed.",
        POWER_SUPPLY,
    ),
    "hw_slowdown": (
        "warn",
        "The hardware holds the clocks down, and does not say whether for heat or power: training runs"
        " slower than it could.",
        Remedy(
            "Watch the reasons under load, and look at cooling and power.",
            ["nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"],
        ),
    ),
    "sw_thermal_slowdown": (
        "warn",
        "The driver holds the clocks down to keep the GPU or its memory below the temperature allowed:"
        " training runs slower than it could.",
        COOLING,
    ),
}
_THROTTLED = {
    "hw_thermal_slowdown": "is throttled by heat",
    "hw_power_brake_slowdown": "is throttled by the power brake",
    "hw_slowdown": "is throttled by its hardware",
    "sw_thermal_slowdown": "is throttled by heat",
}
_COUNTERS = {
    "hw_thermal_slowdown": "slowdown_hw_thermal_us",
    "hw_power_brake_slowdown": "slowdown_hw_power_brake_us",
    "hw_slowdown": "slowdown_hw_thermal_us slowdown_hw_power_brake_us",
    "sw_thermal_slowdown": "slowdown_sw_thermal_us",
}
_NORMAL = {
    "gpu_idle",
    "sw_power_cap",
    "applications_clocks_setting",
    "sync_boost",
    "display_clocks_setting",
    "board_limit",
    "reliability",
}
_EXPLAINS_HW = {"hw_thermal_slowdown", "hw_power_brake_slowdown"}


@check(
    "GPU-008",
    title="Nothing but the power cap holds the clocks back",
    problem="is throttled",
    about="The driver tells why a GPU's clocks are below their maximum. Idle, the software power cap,"
    " the board's limit and the highest reliable voltage are normal: a GPU at full load runs at"
    " one of them. A hardware thermal slowdown or a power brake cut the clocks to half or less: failures, and"
    " a common reason for a machine that is silently slow. A software thermal slowdown, or a hardware one"
    " without its reason, is a warning.",
    sources=(
        "nvml.h, nvmlClocksEventReasons",
        "NVSentinel#890; pytorch#153195; tensorflow#42572",
    ),
    follows=NO_GPUS,
)
def clocks_are_free(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _clock_reasons(view, gpu))


def _clock_reasons(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    active = set(need(gpu.clock_event_reasons, "the clock-event reasons"))
    told = [reason for reason in _REASONS if reason in active]
    if active & _EXPLAINS_HW and "hw_slowdown" in told:
        told.remove("hw_slowdown")
    left = _degrees_left(gpu)
    if told == ["sw_thermal_slowdown"] and left is not None and left <= 0:
        raise Skip("the GPU is too hot, and holds its clocks down for that (GPU-007)")
    if told == ["sw_thermal_slowdown"] and memory_is_too_hot(gpu):
        raise Skip("its memory is too hot, and it holds the clocks down for that (GPU-030)")
    for reason in told:
        level, message, remedy = _REASONS[reason]
        yield finding(
            view,
            level,
            gpu,
            message,
            "clock_event_reasons clock_sm_mhz clock_sm_max_mhz temperature_c power_draw_w"
            f" {_COUNTERS[reason]}",
            remedy,
            _THROTTLED[reason],
        )
    unheard = sorted(active - _NORMAL - set(_REASONS))
    if unheard:
        raise NotKnown(f"the clock-event reason {', '.join(unheard)}")
    if not told:
        yield Passed("no slowdown")
