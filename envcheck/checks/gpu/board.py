"""Checks on the board itself: its InfoROM, its external power and its power limit."""

from __future__ import annotations

from ..driver_state import REPORT
from ..gpus import errors_of, found, gpu_check
from ..reading import Gpu, SnapshotView, Unavailable, known, need
from ..verdicts import Passed, Verdicts, fail, warn

_LOWERED = 0.99  # of the default limit: rounding and the driver's own steps take less than the rest

CORRUPT = fail(
    "inforom-corrupt",
    "has a corrupt InfoROM",
    "The InfoROM is corrupt: the board's configuration and its records of memory errors and repairs cannot be"
    " relied on.",
    "Switch the machine off and on again; if it stays corrupt, the vendor has to rewrite the InfoROM or"
    " replace the board.",
    *("nvidia-smi -q -i {gpu}", REPORT),
)


@gpu_check(
    "GPU-032",
    title="The InfoROM is readable and whole",
    causes=(CORRUPT,),
    about="The InfoROM is the board's own small memory: its configuration, and the ECC errors, retired pages"
    " and remapped rows of its life. If its checksums are wrong, those records are lost.",
    sources=["nvml.h, nvmlDeviceValidateInforom, NVML_ERROR_CORRUPTED_INFOROM"],
)
def inforom_is_whole(view: SnapshotView, gpu: Gpu) -> Verdicts:
    corrupt = errors_of(gpu, ("corrupted inforom",))
    if known(gpu.inforom_valid) is False or corrupt:
        yield found(view, CORRUPT, gpu, " ".join(corrupt[:3]) or "inforom_valid")
        return
    if not known(gpu.inforom_valid):
        need(gpu.inforom, "the InfoROM")
    yield Passed("the InfoROM is readable")


LOWERED = warn(
    "power-limit-lowered",
    "has a lowered power limit",
    "The power limit is {limit:g} W and the board's default {default:g} W: under load the GPU runs at lower"
    " clocks than it could.",
    "Set the default again, unless somebody needs the lower limit.",
    "sudo nvidia-smi -i {gpu} -pl {default:g}",
)


@gpu_check(
    "GPU-009",
    title="The power limit is the board's default",
    causes=(LOWERED,),
    about="A power limit below the board's default caps the clocks under load, often without anybody"
    " remembering who set it. A limit above the default is the owner's business.",
    sources=["nvidia-smi(1), Power Readings; NVSentinel#890"],
)
def power_limit_is_default(view: SnapshotView, gpu: Gpu) -> Verdicts:
    limit = need(gpu.power_limit_w, "the power limit")
    default = need(gpu.power_default_limit_w, "the default power limit")
    if limit < default * _LOWERED:
        fields = "power_limit_w power_default_limit_w"
        yield found(view, LOWERED, gpu, fields, limit=limit, default=default)
    else:
        yield Passed("no lower than the default")


UNPLUGGED = fail(
    "external-power-missing",
    "lacks external power",
    "The board says that its external power cables are not properly attached: it runs at the lowest clocks,"
    " or not at all.",
    "Shut the machine down and attach the board's power cables, each by its own.",
)


@gpu_check(
    "GPU-034",
    title="The board's power cables are attached",
    causes=(UNPLUGGED,),
    about="A board that needs more power than its slot gives reports a cable that is missing or loose.",
    sources=["nvml.h, NVML_ERROR_INSUFFICIENT_POWER; nvidia-smi(1), RETURN VALUE 8"],
)
def power_is_attached(view: SnapshotView, gpu: Gpu) -> Verdicts:
    errors = errors_of(gpu, ("insufficient external power", "insufficient power"))
    if errors:
        yield found(view, UNPLUGGED, gpu, " ".join(errors[:3]))
    elif all(isinstance(fact, Unavailable) for fact in (gpu.power_draw_w, gpu.power_limit_w)):
        need(gpu.power_limit_w, "the board's power")
    else:
        yield Passed("no cable is missing")
