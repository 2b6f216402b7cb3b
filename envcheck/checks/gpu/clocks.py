"""Checks on clocks: how long something held them down, what is set, and low ones that nothing explains."""

from __future__ import annotations

from collections.abc import Iterator

from ..driver_state import REPORT
from ..gpus import found, gpu_check, need_any
from ..reading import Gpu, Skip, SnapshotView, known, need
from ..verdicts import Finding, Passed, Verdicts, warn
from .heat import COOLING, SHOW_HEAT
from .power import POWER_SUPPLY, SHOW_POWER

_SECOND = 1_000_000  # microseconds
BUSY = 90  # percent of utilization from which on clocks are expected to be up
LOW = 0.5  # of the maximum
SLOW_STATE = 5  # P-states of work are below it
SET_TOLERANCE = 0.98  # of the default: clocks come in steps

# Counter: its clock-event reason, the microseconds from which on it counts, the cause. Slowdown by
# software is a few degrees' work and comes and goes.
_PAST = {
    "slowdown_hw_thermal_us": (
        "hw_thermal_slowdown",
        1,
        warn(
            "was-throttled-by-heat",
            "has been throttled by heat",
            "Heat made the hardware cut the clocks to half or less for {time} since the driver was loaded:"
            " under load the GPU gets too hot, and what ran then was slow.",
            COOLING,
            *SHOW_HEAT,
        ),
    ),
    "slowdown_hw_power_brake_us": (
        "hw_power_brake_slowdown",
        1,
        warn(
            "was-throttled-by-power-brake",
            "has been throttled by the power brake",
            "The machine's power brake cut the clocks to half or less for {time} since the driver was"
            " loaded: its power supply or rack could not give what the GPU wanted.",
            POWER_SUPPLY,
            *SHOW_POWER,
        ),
    ),
    "slowdown_sw_thermal_us": (
        "sw_thermal_slowdown",
        60 * _SECOND,
        warn(
            "was-slowed-by-heat",
            "has been slowed down by heat",
            "Heat held the clocks down for {time} since the driver was loaded: under load the GPU or its"
            " memory gets as hot as it may.",
            COOLING,
            *SHOW_HEAT,
        ),
    ),
}


@gpu_check(
    "GPU-027",
    title="Nothing has throttled the GPUs since the driver was loaded",
    causes=[cause for _reason, _least, cause in _PAST.values()],
    about="The driver counts for how long heat and the machine's power brake have cut the clocks, so a"
    " slowdown is seen after the load is gone. The hardware's two counters are zero on healthy machines; a"
    " minute in the driver's own slowdown for heat counts too.",
    sources=["nvidia-smi(1), Clocks Event Reasons Counters"],
    follows=("GPU-007", "GPU-008", "GPU-030"),
)
def clocks_were_free(view: SnapshotView, gpu: Gpu) -> Verdicts:
    need_any(gpu, _PAST, "the time of slowdowns")
    active = known(gpu.clock_event_reasons) or []
    slowed = False
    for counter, (reason, least, cause) in _PAST.items():
        lasted = known(getattr(gpu, counter)) or 0
        if lasted >= least and reason not in active:
            slowed = True
            yield found(view, cause, gpu, counter, time=duration(lasted), microseconds=lasted)
    if not slowed:
        yield Passed("no slowdown since the driver was loaded")


def duration(microseconds: int) -> str:
    """ "830 µs", "12 ms", "4.2 s", "17 min", "3.5 h" """
    if microseconds < 1000:
        return f"{microseconds} µs"
    if microseconds < _SECOND:
        return f"{microseconds // 1000} ms"
    seconds = microseconds / _SECOND
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


STUCK = warn(
    "low-clocks-without-reason",
    "runs at low clocks without a reason",
    "The GPU is busy ({use} %) and {low}, and the driver gives no reason: it computes at a fraction of its"
    " speed.",
    "Check whether its clocks are locked, undo that, and watch it under load; if they stay low, reset it,"
    " and look at its power cables and the machine's firmware.",
    "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER -i {gpu}",
    "sudo nvidia-smi -i {gpu} -rgc",
    "sudo nvidia-smi -i {gpu} -rmc",
    REPORT,
    "sudo nvidia-smi --gpu-reset -i {gpu}",
)


@gpu_check(
    "GPU-028",
    title="Busy GPUs run at high clocks, or say why not",
    causes=(STUCK,),
    about="A busy GPU raises its clocks, and if something holds them down the driver says what (GPU-008,"
    " GPU-029). Low clocks without a reason come from a stuck driver, a power connector or a firmware"
    " fault.",
    sources=["nvidia-smi(1), Performance State, Utilization, Clocks Event Reasons; mcx#18"],
    follows=("GPU-006", "GPU-007", "GPU-008", "GPU-009", "GPU-029", "GPU-034"),
)
def busy_gpus_are_fast(view: SnapshotView, gpu: Gpu) -> Verdicts:
    use = need(gpu.utilization_percent, "the utilization")
    if use < BUSY or not _computes(gpu):
        raise Skip("the GPU is not busy")
    reasons = need(gpu.clock_event_reasons, "the clock-event reasons")
    low = " and ".join(_low(gpu))
    if reasons:
        yield Passed("the driver says what holds the clocks down")
    elif not low:
        need(gpu.clock_sm_max_mhz, "the maximum clock")
        yield Passed("busy, at high clocks")
    else:
        fields = (
            "utilization_percent performance_state clock_sm_mhz clock_sm_max_mhz clock_memory_mhz"
        )
        yield found(view, STUCK, gpu, f"{fields} clock_event_reasons", use=use, low=low)


def _computes(gpu: Gpu) -> bool:
    """Whether a program may be using it. Without a process in sight (in a container) that is not sure: the
    driver scrubs the memory whenever it starts a GPU without persistence."""
    processes = known(gpu.processes)
    if processes:
        return any("C" in one.kind for one in processes)
    return processes is None or known(gpu.persistence) is True


def _low(gpu: Gpu) -> Iterator[str]:
    """What is low, each as a predicate."""
    state = known(gpu.performance_state) or ""
    if state[1:].isdecimal() and int(state[1:]) >= SLOW_STATE:
        yield f"in performance state {state}"
    for what, now, most in (
        ("its clock", known(gpu.clock_sm_mhz), known(gpu.clock_sm_max_mhz)),
        ("its memory's clock", known(gpu.clock_memory_mhz), known(gpu.clock_memory_max_mhz)),
    ):
        if now is not None and most and now < LOW * most:
            yield f"{what} is at {now} of {most} MHz"


# Kind of clock: its fact when set, the default, the maximum, its current value, the option to unlock it.
_CLOCKS = {
    "clock": ("clock_set_mhz", "clock_set_default_mhz", "clock_sm_max_mhz", "clock_sm_mhz", "rgc"),
    "memory's clock": (
        "clock_memory_set_mhz",
        "clock_memory_set_default_mhz",
        "clock_memory_max_mhz",
        "clock_memory_mhz",
        "rmc",
    ),
}
SET_LOW = warn(
    "clock-set-low",
    "has its clocks set low",
    "The {clock} is set to {mhz} MHz and {usual}: programs run slower than they could.",
    "Set the default again, unless somebody needs the setting; newer drivers have locked clocks instead.",
    "sudo nvidia-smi -i {gpu} -rac",
    "sudo nvidia-smi -i {gpu} -{option}",
)
LOCKED_LOW = warn(
    "clock-locked-low",
    "has its clocks set low",
    "The {clock} is at {mhz} of {most} MHz because it is set or locked: programs run at a fraction of the"
    " GPU's speed.",
    "Undo the setting, unless somebody needs it.",
    "sudo nvidia-smi -i {gpu} -{option}",
    "sudo nvidia-smi -i {gpu} -rac",
)


@gpu_check(
    "GPU-029",
    title="No clock is set low",
    causes=(SET_LOW, LOCKED_LOW),
    about="Clocks can be set (applications clocks, nvidia-smi -ac) and locked (-lgc, -lmc), and stay so"
    " until somebody undoes it or the driver is reloaded. Some boards' defaults are below their maximum,"
    " which is normal.",
    sources=["nvidia-smi(1), Applications Clocks, --lock-gpu-clocks"],
)
def clocks_are_not_set_low(view: SnapshotView, gpu: Gpu) -> Verdicts:
    need_any(gpu, ("clock_event_reasons", "clock_set_mhz"), "the clock-event reasons")
    low = list(_set_low(view, gpu)) or list(_locked_low(view, gpu))
    yield from low
    if not low:
        yield Passed("no clock is set low")


def _set_low(view: SnapshotView, gpu: Gpu) -> Iterator[Finding]:
    for clock, (*fields, _now, option) in _CLOCKS.items():
        now, default, most = (known(getattr(gpu, field)) for field in fields)
        least = SET_TOLERANCE * default if default else LOW * most if most else 0
        if now is None or now >= least:
            continue
        usual = f"its default is {default}" if default else f"its maximum is {most}"
        names = f"{' '.join(fields)} clock_event_reasons"
        yield found(view, SET_LOW, gpu, names, clock=clock, mhz=now, usual=usual, option=option)


def _locked_low(view: SnapshotView, gpu: Gpu) -> Iterator[Finding]:
    reasons = known(gpu.clock_event_reasons) or []
    if "applications_clocks_setting" not in reasons or "gpu_idle" in reasons:
        return
    for clock, (_set, default_field, most_field, now_field, option) in _CLOCKS.items():
        now, most = known(getattr(gpu, now_field)), known(getattr(gpu, most_field))
        default = known(getattr(gpu, default_field))
        if now is not None and most and now < LOW * (default or most):
            fields = f"clock_event_reasons {now_field} {most_field} clock_set_mhz"
            yield found(
                view, LOCKED_LOW, gpu, fields, clock=clock, mhz=now, most=most, option=option
            )
            return
