"""The check on clocks that are set low."""

from __future__ import annotations

from ..declared import declared_causes
from ..gpus import found, gpu_check, need_any
from ..reading import Gpu, SnapshotView, known
from ..verdicts import Params, Passed, Verdicts

CAUSE = declared_causes(__name__)

LOW = 0.5  # of the maximum
LOW_UNDER_LOAD = 0.6  # of the memory's: computing, GeForce boards keep nine tenths
SET_TOLERANCE = 0.98  # of the default: clocks come in steps

# Kind of clock: its fact when set, the default, the maximum, the option to unlock it.
_CLOCKS = {
    "clock": "clock_set_mhz clock_set_default_mhz clock_sm_max_mhz rgc",
    "memory's clock": "clock_memory_set_mhz clock_memory_set_default_mhz clock_memory_max_mhz rmc",
}
_HELD = 0.75  # of the maximum
_BUSY = 90  # percent: from here on the driver wants the full clock


@gpu_check("GPU-029")
def clocks_are_not_set_low(view: SnapshotView, gpu: Gpu) -> Verdicts:
    need_any(gpu, ("clock_event_reasons", "clock_set_mhz"), "the clock-event reasons")
    low = []
    for clock, names in _CLOCKS.items():
        *fields, option = names.split()
        mhz, default, most = (known(getattr(gpu, field)) for field in fields)
        default = default if default and default <= (most or default) else None
        least = SET_TOLERANCE * default if default else LOW * (most or 0)
        if mhz is not None and mhz < least:
            usual = f"its default is {default}" if default else f"its maximum is {most}"
            params: Params = {"clock": clock, "mhz": mhz, "usual": usual, "option": option}
            low.append(found(view, CAUSE["clock-set-low"], gpu, " ".join(fields), **params))
    busy = (known(gpu.utilization_percent) or 0) >= _BUSY
    set_to, top = known(gpu.clock_set_mhz), known(gpu.clock_sm_max_mhz) or 0
    held = "applications_clocks_setting" in (known(gpu.clock_event_reasons) or [])
    if not low and held and busy and set_to and set_to < _HELD * top:
        names = "clock_event_reasons clock_set_mhz clock_set_default_mhz clock_sm_max_mhz"
        params = {"load": known(gpu.utilization_percent), "mhz": set_to, "most": top}
        memory = known(gpu.clock_memory_max_mhz)
        low.append(found(view, CAUSE["default-clock-holds"], gpu, names, memory=memory, **params))
    now, most = known(gpu.clock_memory_mhz), known(gpu.clock_memory_max_mhz)
    load = known(gpu.utilization_percent) or 0
    if not low and load >= _BUSY and now is not None and now < LOW_UNDER_LOAD * (most or 0):
        names = "clock_memory_mhz clock_memory_max_mhz utilization_percent"
        low.append(
            found(view, CAUSE["memory-clock-stuck"], gpu, names, load=load, mhz=now, most=most)
        )
    yield from low
    if not low:
        yield Passed("no clock is set low")
