"""Checks on power: the limits that are set, and the cables."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import Unavailable, known
from ...facts.gpu import Gpu
from ...facts.view import SnapshotView, need
from ...findings.model import Passed, Remedy, Verdict
from ..driver_state import NO_GPUS
from ..gpus import about_errors, address_of, errors_of, finding, judge_gpus
from ..registry import check

POWER_TOLERANCE = 0.01  # of the default limit: what rounding and the driver's own steps make of it
_NO_POWER = ("insufficient external power", "insufficient power")
POWER_SUPPLY = Remedy(
    "Look at the power supplies, their redundancy and cables, and at the power limits that the"
    " server's management controller sets.",
    ["nvidia-smi -q -d PERFORMANCE,POWER", "sudo ipmitool sdr type 'Power Supply'"],
)


@check(
    "GPU-009",
    title="The power limit is the board's default",
    problem="has a lowered power limit",
    about="A power limit below the board's default caps the clocks under load, often without anybody"
    " remembering who set it: a warning, and so is one of the module (GPU and CPU on Grace) or one that is"
    " below the least that the board takes. A limit above the default is the owner's business.",
    sources=("nvidia-smi(1), Power Readings", "NVSentinel#890"),
    follows=NO_GPUS,
)
def power_limit_is_default(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _power_limit(view, gpu))


def _power_limit(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    module, module_default = (
        known(gpu.module_power_limit_w),
        known(gpu.module_power_default_limit_w),
    )
    if module and module_default and module < module_default * (1 - POWER_TOLERANCE):
        yield finding(
            view,
            "warn",
            gpu,
            f"The module's power limit is {module:g} W and its default {module_default:g} W: under load"
            " GPU and"
            " CPU share less power than they could have.",
            "module_power_limit_w module_power_default_limit_w",
            Remedy(
                "Set the default again, if nobody needs the lower limit.",
                [f"sudo nvidia-smi -i {address_of(gpu)} -pl {module_default:g} -sc 1"],
            ),
            "is on a module with a lowered power limit",
        )
    limit = need(gpu.power_limit_w, "the power limit")
    least = known(gpu.power_min_limit_w)
    if least and limit < least * (1 - POWER_TOLERANCE):
        yield finding(
            view,
            "warn",
            gpu,
            f"The power limit is {limit:g} W, below the {least:g} W that the board takes at least:"
            " something other"
            " than nvidia-smi holds it down.",
            "power_limit_w power_min_limit_w power_default_limit_w",
            Remedy(
                f"{POWER_SUPPLY.text} Then set the default again.",
                [
                    *POWER_SUPPLY.commands,
                    f"sudo nvidia-smi -i {address_of(gpu)} -pl {known(gpu.power_default_limit_w) or least:g}",
                ],
            ),
        )
        return
    default = need(gpu.power_default_limit_w, "the default power limit")
    if limit < default * (1 - POWER_TOLERANCE):
        yield finding(
            view,
            "warn",
            gpu,
            f"The power limit is {limit:g} W and the board's default {default:g} W: under load the GPU runs"
            " at lower clocks than it could.",
            "power_limit_w power_default_limit_w",
            Remedy(
                "Set the default again, if nobody needs the lower limit.",
                [f"sudo nvidia-smi -i {address_of(gpu)} -pl {default:g}"],
            ),
        )
    else:
        yield Passed("no lower than the default")


@check(
    "GPU-034",
    title="The board's power cables are attached",
    problem="lacks external power",
    about="A board that needs more power than its slot gives has connectors for it, and says so where a cable"
    " is missing or loose: it runs at the lowest clocks, or not at all. A failure.",
    sources=("nvml.h, NVML_ERROR_INSUFFICIENT_POWER", "nvidia-smi(1), RETURN VALUE 8"),
    follows=NO_GPUS,
)
def power_is_attached(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _power(view, gpu))


def _power(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    said = errors_of(gpu, _NO_POWER)
    if said:
        yield about_errors(
            view,
            gpu,
            "fail",
            "The board says that its external power cables are not properly attached: it runs at the lowest"
            " clocks, or not at all.",
            said,
            Remedy("Shut the machine down and attach the board's power cables, each by its own."),
        )
    elif all(isinstance(fact, Unavailable) for fact in (gpu.power_draw_w, gpu.power_limit_w)):
        need(gpu.power_limit_w, "the board's power")
    else:
        yield Passed("no cable is missing")
