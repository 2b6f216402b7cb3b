"""Checks on clocks: low ones that nothing explains, and those that are set low."""

from __future__ import annotations

from ..driver_state import REPORT
from ..gpus import found, gpu_check, need_any
from ..reading import Gpu, Skip, SnapshotView, known, need
from ..verdicts import Params, Passed, Verdicts, warn

BUSY = 90  # percent of utilization from which on clocks are expected to be up
LOW = 0.5  # of the maximum
SLOW_STATE = 5  # P-states of work are below it
SET_TOLERANCE = 0.98  # of the default: clocks come in steps

STUCK = warn(
    "low-clocks-without-reason",
    "runs at low clocks without a reason",
    "The GPU is busy ({use} %) and {low}, and the driver gives no reason: it computes slowly.",
    "Check whether its clocks are locked, undo that, and watch it under load; if they stay low, reset it, and"
    " look at its power cables and the machine's firmware.",
    "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER -i {gpu}",
    "sudo nvidia-smi -i {gpu} -rgc",
    "sudo nvidia-smi -i {gpu} -rmc",
    *(REPORT, "sudo nvidia-smi --gpu-reset -i {gpu}"),
)


@gpu_check(
    "GPU-028",
    title="Busy GPUs run at high clocks, or say why not",
    causes=(STUCK,),
    about="A busy GPU raises its clocks; if something holds them down, the driver reports the reason"
    " (GPU-008, GPU-029). Low clocks without a reason come from a stuck driver, a power connector or a"
    " firmware fault.",
    sources=["nvidia-smi(1), Performance State, Clocks Event Reasons; mcx#18"],
    follows=("GPU-006", "GPU-007", "GPU-008", "GPU-009", "GPU-029"),
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
        fields = "utilization_percent performance_state clock_sm_mhz clock_sm_max_mhz"
        yield found(view, STUCK, gpu, f"{fields} clock_event_reasons", use=use, low=low)


def _computes(gpu: Gpu) -> bool:
    """Whether a program may be using it. Without a process in sight (in a container) that is not sure: the
    driver scrubs the memory whenever it starts a GPU without persistence."""
    processes = known(gpu.processes)
    if processes:
        return any("C" in one.kind for one in processes)
    return processes is None or known(gpu.persistence) is True


def _low(gpu: Gpu) -> list[str]:
    """What is low, each as a predicate."""
    state = known(gpu.performance_state) or ""
    low = state[1:].isdecimal() and int(state[1:]) >= SLOW_STATE
    found = [f"in performance state {state}"] if low else []
    for what, now, most in (
        ("its clock", known(gpu.clock_sm_mhz), known(gpu.clock_sm_max_mhz)),
        ("its memory's clock", known(gpu.clock_memory_mhz), known(gpu.clock_memory_max_mhz)),
    ):
        if now is not None and most and now < LOW * most:
            found.append(f"{what} is at {now} of {most} MHz")
    return found


# Kind of clock: its fact when set, the default, the maximum, the option to unlock it.
_CLOCKS = {
    "clock": "clock_set_mhz clock_set_default_mhz clock_sm_max_mhz rgc",
    "memory's clock": "clock_memory_set_mhz clock_memory_set_default_mhz clock_memory_max_mhz rmc",
}
SET_LOW = warn(
    "clock-set-low",
    "has its clocks set low",
    "The {clock} is set to {mhz} MHz and {usual}: programs run slower than they could.",
    "Set the default again, unless somebody needs the setting; newer drivers have locked clocks instead.",
    *("sudo nvidia-smi -i {gpu} -rac", "sudo nvidia-smi -i {gpu} -{option}"),
)


@gpu_check(
    "GPU-029",
    title="No clock is set low",
    causes=(SET_LOW,),
    about="Clocks can be set (applications clocks, nvidia-smi -ac) and locked (-lgc, -lmc), and stay so"
    " until somebody resets them or the driver is reloaded. Some boards' defaults are below their"
    " maximum.",
    sources=[
        "nvidia-smi(1), Applications Clocks, --lock-gpu-clocks; nvml.h, nvmlClocksEventReasons"
    ],
)
def clocks_are_not_set_low(view: SnapshotView, gpu: Gpu) -> Verdicts:
    need_any(gpu, ("clock_event_reasons", "clock_set_mhz"), "the clock-event reasons")
    low = []
    for clock, names in _CLOCKS.items():
        *fields, option = names.split()
        mhz, default, most = (known(getattr(gpu, field)) for field in fields)
        least = SET_TOLERANCE * default if default else LOW * (most or 0)
        if mhz is not None and mhz < least:
            usual = f"its default is {default}" if default else f"its maximum is {most}"
            params: Params = {"clock": clock, "mhz": mhz, "usual": usual, "option": option}
            low.append(found(view, SET_LOW, gpu, " ".join(fields), **params))
    yield from low
    if not low:
        yield Passed("no clock is set low")
