"""Checks on the board itself: its InfoROM, its external power and its power limit."""

from __future__ import annotations

from ..driver_state import REPORT, service
from ..gpus import CORRUPTED_INFOROM, errors_of, found, gpu_check
from ..reading import Gpu, SnapshotView, known, need
from ..system_commands import systemctl
from ..verdicts import Passed, Verdicts, fail, warn

_LOWERED = 0.99  # of the default limit: rounding and the driver's own steps take less than the rest

CORRUPT = fail(
    "inforom-corrupt",
    "has a corrupt InfoROM",
    "The InfoROM is corrupt: the records of memory errors and repairs cannot be relied on.",
    "Switch the machine off and on again; if that does not help, ask the vendor to rewrite it.",
    "nvidia-smi -q -i {gpu}",
    REPORT,
)


@gpu_check(
    "GPU-032",
    title="The InfoROM is readable and whole",
    causes=(CORRUPT,),
    about="The InfoROM is the board's own small memory. It stores the configuration, and all ECC errors,"
    " retired pages and remapped rows. If its checksums are wrong, those records are lost.",
    sources=["nvml.h, nvmlDeviceValidateInforom, NVML_ERROR_CORRUPTED_INFOROM"],
)
def inforom_is_whole(view: SnapshotView, gpu: Gpu) -> Verdicts:
    corrupt = [name for name, code in errors_of(gpu).items() if code == CORRUPTED_INFOROM]
    if known(gpu.inforom_valid) is False or corrupt:
        yield found(view, CORRUPT, gpu, " ".join(corrupt[:3]) or "inforom_valid")
        return
    if not known(gpu.inforom_valid):
        need(gpu.inforom, "the InfoROM")
    yield Passed("the InfoROM is readable")


LOWERED = warn(
    "power-limit-lowered",
    "has a lowered power limit",
    "The power limit is {limit:g} W and the board's default {default:g} W: its clocks are lower.",
    "Set the default again, unless somebody needs the lower limit.",
    "sudo nvidia-smi -i {gpu} -pl {default:g}",
)


NO_BOOST = LOWERED.variant(
    "dynamic-boost-off",
    headline="is held at its limit without Dynamic Boost",
    sentence="The power limit of {limit:g} W holds this laptop's GPU back, up to {most:g} W are possible, and"
    " nvidia-powerd, which raises the limit under load (Dynamic Boost), does not run.",
    remedy="Start it, with the laptop on its mains adapter.",
    commands=(systemctl("enable --now", "nvidia-powerd"), "nvidia-smi -q -d POWER -i {gpu}"),
)


@gpu_check(
    "GPU-009",
    title="The power limit is the board's default",
    causes=(LOWERED, NO_BOOST),
    about="A power limit below the board's default reduces the clocks under load, often long after somebody"
    " set it. A limit above the default is the owner's choice.",
    sources=["nvidia-smi(1), Power Readings; NVSentinel#890"],
)
def power_limit_is_default(view: SnapshotView, gpu: Gpu) -> Verdicts:
    limit = need(gpu.power_limit_w, "the power limit")
    default = need(gpu.power_default_limit_w, "the default power limit")
    if limit < default * _LOWERED:
        fields = "power_limit_w power_default_limit_w"
        yield found(view, LOWERED, gpu, fields, limit=limit, default=default)
    elif _waits_for_boost(view, gpu, limit):
        fields = "power_limit_w power_max_limit_w clock_event_reasons"
        yield found(view, NO_BOOST, gpu, fields, limit=limit, most=known(gpu.power_max_limit_w))
    else:
        yield Passed("no lower than the default")


def _waits_for_boost(view: SnapshotView, gpu: Gpu, limit: float) -> bool:
    """A laptop's GPU at a limit that nvidia-powerd would raise, if it ran."""
    daemon = service(view, "nvidia-powerd")
    stopped = daemon is not None and known(daemon.installed) and known(daemon.running) is False
    held = "sw_power_cap" in (known(gpu.clock_event_reasons) or [])
    most = known(gpu.power_max_limit_w) or 0.0
    return bool(stopped and held and most > limit and "Laptop" in (known(gpu.name) or ""))
