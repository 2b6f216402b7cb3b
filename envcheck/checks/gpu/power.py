"""Checks on power: the limits that are set, and the cables."""

from __future__ import annotations

from ..gpus import errors_of, found, gpu_check
from ..reading import Gpu, SnapshotView, Unavailable, known, need
from ..verdicts import Passed, Verdicts, fail, warn

_LOWERED = 0.99  # of the default limit: rounding and the driver's own steps take less than the rest
_NO_POWER = ("insufficient external power", "insufficient power")

POWER_SUPPLY = (
    "Look at the power supplies, their redundancy and cables, and at the power limits that the server's"
    " management controller sets."
)
SHOW_POWER = (
    "nvidia-smi -q -d PERFORMANCE,POWER",
    "sudo ipmitool sdr type 'Power Supply'",
)
_SET_AGAIN = "Set the default again, unless somebody needs the lower limit."

MODULE_LOW = warn(
    "module-power-limit-lowered",
    "is on a module with a lowered power limit",
    "The module's power limit is {limit:g} W and its default {default:g} W: under load GPU and CPU share"
    " less power than they could have.",
    _SET_AGAIN,
    "sudo nvidia-smi -i {gpu} -pl {default:g} -sc 1",
)
LOWERED = warn(
    "power-limit-lowered",
    "has a lowered power limit",
    "The power limit is {limit:g} W and the board's default {default:g} W: under load the GPU runs at lower"
    " clocks than it could.",
    _SET_AGAIN,
    "sudo nvidia-smi -i {gpu} -pl {default:g}",
)


@gpu_check(
    "GPU-009",
    title="The power limit is the board's default",
    causes=(MODULE_LOW, LOWERED),
    about="A power limit below the board's default caps the clocks under load, often without anybody"
    " remembering who set it. A limit above the default is the owner's business.",
    sources=["nvidia-smi(1), Power Readings; NVSentinel#890"],
)
def power_limit_is_default(view: SnapshotView, gpu: Gpu) -> Verdicts:
    module, usual = known(gpu.module_power_limit_w), known(gpu.module_power_default_limit_w)
    if module and usual and module < usual * _LOWERED:
        fields = "module_power_limit_w module_power_default_limit_w"
        yield found(view, MODULE_LOW, gpu, fields, limit=module, default=usual)
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
    about="A board that needs more power than its slot gives reports a cable that is missing or loose: it"
    " runs at the lowest clocks, or not at all.",
    sources=["nvml.h, NVML_ERROR_INSUFFICIENT_POWER; nvidia-smi(1), RETURN VALUE 8"],
)
def power_is_attached(view: SnapshotView, gpu: Gpu) -> Verdicts:
    errors = errors_of(gpu, _NO_POWER)
    if errors:
        yield found(view, UNPLUGGED, gpu, " ".join(errors[:3]))
    elif all(isinstance(fact, Unavailable) for fact in (gpu.power_draw_w, gpu.power_limit_w)):
        need(gpu.power_limit_w, "the board's power")
    else:
        yield Passed("no cable is missing")
