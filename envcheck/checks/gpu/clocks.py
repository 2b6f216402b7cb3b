"""The check on clocks that are set low."""

from __future__ import annotations

from ..gpus import found, gpu_check, need_any
from ..reading import Gpu, SnapshotView, known
from ..verdicts import Params, Passed, Verdicts, warn

LOW = 0.5  # of the maximum
SET_TOLERANCE = 0.98  # of the default: clocks come in steps

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
    "sudo nvidia-smi -i {gpu} -rac",
    "sudo nvidia-smi -i {gpu} -{option}",
)


@gpu_check(
    "GPU-029",
    title="No clock is set low",
    causes=(SET_LOW,),
    about="Clocks can be set (nvidia-smi -ac) and locked (-lgc, -lmc), and stay so until somebody resets"
    " them or the driver is reloaded.",
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
