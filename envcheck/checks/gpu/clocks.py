"""Checks on clocks: how long something held them down, what is set, and low ones that nothing explains."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import Skip
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..driver_state import NO_GPUS, REPORT
from ..gpus import address_of, finding, judge_gpus
from ..registry import check
from .heat import COOLING
from .power import POWER_SUPPLY

_SECOND = 1_000_000  # microseconds
# Slowdown by software is a few degrees' work and comes and goes: from a minute on it is worth a look.
SOFTWARE_US = 60 * _SECOND
BUSY = 90  # percent of utilization from which on clocks are expected to be up
LOW = 0.5  # of the maximum
DRAWS = 0.7  # of the power limit, from which on it is the limit that holds the clocks
SLOW_STATE = 5  # P-states of work are below it
SET_TOLERANCE = 0.98  # of the default: clocks come in steps

# Fact, its clock-event reason, from which time on it is told, what it means, remedy, headline.
_PAST = (
    (
        "slowdown_hw_thermal_us",
        "hw_thermal_slowdown",
        1,
        "Heat made the hardware cut the clocks to half or less for {0} since the driver was loaded: under"
        " load the GPU gets too hot, and what ran then was slow.",
        COOLING,
        "has been throttled by heat",
    ),
    (
        "slowdown_hw_power_brake_us",
        "hw_power_brake_slowdown",
        1,
        "The machine's power brake cut the clocks to half or less for {0} since the driver was loaded: its"
        " power supply or rack could not give what the GPU wanted.",
        POWER_SUPPLY,
        "has been throttled by the power brake",
    ),
    (
        "slowdown_sw_thermal_us",
        "sw_thermal_slowdown",
        SOFTWARE_US,
        "Heat held the clocks down for {0} since the driver was loaded: under load the GPU or its memory gets"
        " as hot as it may.",
        COOLING,
        "has been slowed down by heat",
    ),
)


@check(
    "GPU-027",
    title="Nothing has throttled the GPUs since the driver was loaded",
    problem="has been throttled",
    about="The driver counts for how long heat and the machine's power brake have cut the clocks, so a"
    " slowdown is seen after the load is gone. Any time in the hardware's two is a warning: they cut the"
    " clocks to half or less, and are zero on machines that are well. So is a minute in the driver's own"
    " slowdown for heat. The power cap's counter is not judged: at full load it is normal. What holds the"
    " clocks down now is GPU-008's.",
    sources=(
        "nvidia-smi(1), Clocks Event Reasons Counters",
        "nvml.h, NVML_FI_DEV_CLOCKS_EVENT_REASON_*",
    ),
    follows=(*NO_GPUS, "GPU-007", "GPU-008", "GPU-030"),
)
def clocks_were_free(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _past(view, gpu))


def _past(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    counted = [entry for entry in _PAST if known(getattr(gpu, entry[0])) is not None]
    if not counted:
        need(gpu.slowdown_hw_thermal_us, "the time of slowdowns")
        raise Skip("the time of slowdowns is not told")
    active = known(gpu.clock_event_reasons) or []
    told = [
        entry
        for entry in counted
        if (known(getattr(gpu, entry[0])) or 0) >= entry[2] and entry[1] not in active
    ]
    for name, _reason, _least, message, remedy, headline in told:
        lasted = duration(known(getattr(gpu, name)) or 0)
        yield finding(view, "warn", gpu, message.format(lasted), name, remedy, headline)
    if not told:
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


@check(
    "GPU-028",
    title="Busy GPUs run at high clocks, or say why not",
    problem="runs at low clocks without a reason",
    about="A GPU that is busy raises its clocks, and where something holds them down the driver says what"
    " (GPU-008, GPU-029). A busy GPU in a low performance state, or with the clock of its multiprocessors"
    " or memory under half of its maximum, that gives no reason is a warning: a driver that got stuck, a"
    " power connector or a firmware fault does that. So is one that is held down by a sync boost group, or"
    " by a power cap that it does not come near to. GPUs that only draw, and those whose utilization the"
    " driver does not tell (MIG), are not judged.",
    sources=("nvidia-smi(1), Performance State, Utilization, Clocks Event Reasons", "mcx#18"),
    follows=(*NO_GPUS, "GPU-006", "GPU-007", "GPU-008", "GPU-009", "GPU-029", "GPU-034"),
)
def busy_gpus_are_fast(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _busy(view, gpu))


def _busy(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    use = need(gpu.utilization_percent, "the utilization")
    if use < BUSY or not _computes(gpu):
        raise Skip("the GPU is not busy")
    reasons = need(gpu.clock_event_reasons, "the clock-event reasons")
    low = _low(gpu)
    if reasons:
        yield _held(view, gpu, set(reasons), low) or Passed(
            "the driver says what holds the clocks down"
        )
        return
    if not low:
        need(gpu.clock_sm_max_mhz, "the maximum clock")
        yield Passed("busy, at high clocks")
        return
    yield finding(
        view,
        "warn",
        gpu,
        f"The GPU is busy ({use} %) and {' and '.join(low)}, and the driver gives no reason: it computes at a"
        " fraction of its speed.",
        "utilization_percent performance_state clock_sm_mhz clock_sm_max_mhz clock_memory_mhz"
        " clock_event_reasons",
        Remedy(
            "See whether its clocks are locked, undo that, and watch it under load; where they stay low,"
            " reset"
            " it, and look at its power cables and the machine's firmware.",
            [
                f"nvidia-smi -q -d PERFORMANCE,CLOCK,POWER -i {address_of(gpu)}",
                f"sudo nvidia-smi -i {address_of(gpu)} -rgc",
                f"sudo nvidia-smi -i {address_of(gpu)} -rmc",
                REPORT,
                f"sudo nvidia-smi --gpu-reset -i {address_of(gpu)}",
            ],
        ),
    )


def _computes(gpu: Gpu) -> bool:
    """Whether the use may be a program's: where none is seen (a container), not the driver's own scrubbing
    of the memory, which it does whenever it starts a GPU that nothing keeps up."""
    processes = known(gpu.processes)
    if processes:
        return any("C" in one.kind for one in processes)
    return processes is None or known(gpu.persistence) is True


def _held(view: SnapshotView, gpu: Gpu, reasons: set[str], low: list[str]) -> Finding | None:
    """Clocks that are low for a reason which is no reason for clocks that low."""
    draw, limit = known(gpu.power_draw_w), known(gpu.power_limit_w)
    if not low or not reasons <= {"sync_boost", "sw_power_cap"}:
        return None
    fields = "clock_event_reasons clock_sm_mhz clock_sm_max_mhz power_draw_w power_limit_w"
    if "sync_boost" in reasons:
        return finding(
            view,
            "warn",
            gpu,
            f"The GPU is busy and {' and '.join(low)}, tied to the clocks of the others in its sync boost"
            " group:"
            " one of them is slow.",
            fields,
            Remedy(
                "Find the slowest GPU of the group and what holds it back, or take this one out of the"
                " group.",
                ["nvidia-smi -q -d PERFORMANCE,CLOCK", "dcgmi config --get"],
            ),
            "is held back by its sync boost group",
        )
    if draw is None or limit is None or draw >= DRAWS * limit:
        return None
    return finding(
        view,
        "warn",
        gpu,
        f"The GPU is busy and {' and '.join(low)} for its power cap, though it draws {draw:g} of {limit:g} W:"
        " another limit than the board's own (of the module, the chassis or the rack) holds it down.",
        fields,
        POWER_SUPPLY,
        "is held back by a power cap that is not its own",
    )


def _low(gpu: Gpu) -> list[str]:
    """What is low, each as a predicate."""
    found = []
    state = known(gpu.performance_state) or ""
    if state[1:].isdecimal() and int(state[1:]) >= SLOW_STATE:
        found.append(f"in performance state {state}")
    for what, now, most in (
        ("its clock", known(gpu.clock_sm_mhz), known(gpu.clock_sm_max_mhz)),
        ("its memory's clock", known(gpu.clock_memory_mhz), known(gpu.clock_memory_max_mhz)),
    ):
        if now is not None and most and now < LOW * most:
            found.append(f"{what} is at {now} of {most} MHz")
    return found


@check(
    "GPU-029",
    title="No clock is set low",
    problem="has its clocks set low",
    about="Clocks can be set (applications clocks, nvidia-smi -ac) and locked (-lgc, -lmc), and stay so"
    " until somebody takes it back or the driver is reloaded. Set below the default, under half of the"
    " maximum where there is no default, or locked so that a GPU at work reaches less than half of it: a"
    " warning. The defaults of some boards are below their maximum, which is as it should be.",
    sources=(
        "nvidia-smi(1), Applications Clocks, --lock-gpu-clocks",
        "nvml.h, nvmlClocksEventReasons",
    ),
    follows=NO_GPUS,
)
def clocks_are_not_set_low(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _set(view, gpu))


# What is set, its default, its maximum, what it is called.
_SETTINGS = (
    ("clock_set_mhz", "clock_set_default_mhz", "clock_sm_max_mhz", "applications clock"),
    (
        "clock_memory_set_mhz",
        "clock_memory_set_default_mhz",
        "clock_memory_max_mhz",
        "memory's applications clock",
    ),
)


def _set(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    found = list(_set_low(view, gpu)) or list(_locked_low(view, gpu))
    if found:
        yield from found
    elif known(gpu.clock_set_mhz) is not None or known(gpu.clock_event_reasons) is not None:
        yield Passed("no clock is set low")
    else:
        need(gpu.clock_event_reasons, "the clock-event reasons")


def _set_low(view: SnapshotView, gpu: Gpu) -> Iterator[Finding]:
    for name, default_name, most_name, called in _SETTINGS:
        now, default, most = (
            known(getattr(gpu, field)) for field in (name, default_name, most_name)
        )
        least = SET_TOLERANCE * default if default else LOW * most if most else 0
        if now is None or now >= least:
            continue
        usual = f"its default is {default}" if default else f"its maximum is {most}"
        yield finding(
            view,
            "warn",
            gpu,
            f"The {called} is set to {now} MHz and {usual}: programs run slower than they could.",
            f"{name} {default_name} {most_name} clock_event_reasons",
            Remedy(
                "Set the default again, if nobody needs it so; newer drivers have locked clocks instead.",
                [
                    f"sudo nvidia-smi -i {address_of(gpu)} -rac",
                    f"sudo nvidia-smi -i {address_of(gpu)} -{'rmc' if 'memory' in name else 'rgc'}",
                ],
            ),
        )


def _locked_low(view: SnapshotView, gpu: Gpu) -> Iterator[Finding]:
    reasons = known(gpu.clock_event_reasons) or []
    if "applications_clocks_setting" not in reasons or "gpu_idle" in reasons:
        return
    default = known(gpu.clock_set_default_mhz)
    now, most = known(gpu.clock_sm_mhz), known(gpu.clock_sm_max_mhz)
    memory, memory_most = known(gpu.clock_memory_mhz), known(gpu.clock_memory_max_mhz)
    low = now is not None and most and now < LOW * (default or most)
    if not low and (memory is None or not memory_most or memory >= LOW * memory_most):
        return
    told = (
        f"The clock is at {now} of {most}"
        if low
        else f"The memory's clock is at {memory} of {memory_most}"
    )
    yield finding(
        view,
        "warn",
        gpu,
        f"{told} MHz since it is set or locked so: programs run at a fraction of the GPU's speed.",
        "clock_event_reasons clock_sm_mhz clock_sm_max_mhz clock_set_mhz clock_memory_mhz",
        Remedy(
            "Take the setting back, if nobody needs it so.",
            [
                f"sudo nvidia-smi -i {address_of(gpu)} -{'rgc' if low else 'rmc'}",
                f"sudo nvidia-smi -i {address_of(gpu)} -rac",
            ],
        ),
    )
