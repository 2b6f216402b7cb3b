"""The likely cause of what is not proven, out of the facts around the run, and the remedy."""

from __future__ import annotations

import re

from ..facts.base import Unavailable
from ..findings.model import Remedy
from ..findings.shell import word
from . import not_engaged
from .circumstances import OVERRIDE, Setup, Why, again
from .signatures import EMULATED

STICKY = re.compile(
    r"ILLEGAL_ADDRESS|ILLEGAL_INSTRUCTION|LAUNCH_FAILED|LAUNCH_TIMEOUT|MISALIGNED_ADDRESS"
    r"|HARDWARE_STACK_ERROR|INVALID_ADDRESS_SPACE|INVALID_PC|ECC_UNCORRECTABLE|CONTEXT_IS_DESTROYED"
    # cudaGetErrorString's words for the same, which is all that PyTorch says
    r"|an illegal (?:memory access|instruction) was encountered|unspecified launch failure"
    r"|the launch timed out and was terminated|misaligned address|hardware stack error"
    r"|operation not supported on global/shared address space|invalid program counter"
    r"|uncorrectable ECC error encountered"
)
LOOK_FOR_XIDS = Remedy(
    "See what the driver wrote about it: an Xid names the reason.",
    ["sudo dmesg | grep -i -e xid -e nvrm | tail -20", "nvidia-smi -q -d ECC,TEMPERATURE,POWER"],
)


def why(setup: Setup) -> Why | None:
    """The cause of a verdict that is not "proven", or of a control that is not "not engaged"."""
    if setup.verdict in ("proven", "not applicable"):
        return None if not setup.control_wanted else _engaged(setup)
    if setup.verdict == "could not run":
        return _could_not_run(setup)
    if setup.verdict == "not engaged":
        return not_engaged.cause(setup)
    return _engaged(setup) if setup.control_wanted else _unsure(setup)


def _engaged(setup: Setup) -> Why | None:
    """A control that did not come out as it must."""
    emulating = [
        variable
        for variable, value in {**setup.run.variables, **setup.variables}.items()
        if variable.startswith("CUBLAS_EMULAT") and value.strip() not in ("", "0")
    ]
    if emulating:
        return Why(
            f"{', '.join(emulating)}: cuBLAS is set to emulate FP32 on Tensor Cores.",
            Remedy("Unset it.", [f"unset {' '.join(map(word, emulating))}"]),
        )
    if setup.verdict not in ("proven", "indicated"):
        return _unsure(setup)
    if setup.run.level == "L0":
        return Why(
            "Fused multiply-adds of one by one came out as a Tensor Core's, so that the evidence itself"
            " cannot be trusted here."
        )
    who = setup.cublas if setup.run.level == "L1" else setup.framework
    if setup.reading.unit.endswith(EMULATED):
        return Why(f"{who} emulates FP32 on Tensor Cores, without being asked to.")
    if setup.run.level == "L1":
        return Why(
            f"{who} used Tensor Cores, though it was asked for FP32 products and nothing less"
            " (CUBLAS_COMPUTE_32F_PEDANTIC)."
        )
    return Why(
        f"Neither {OVERRIDE}=0 nor {who}'s own switch keeps these FP32 products off the Tensor Cores."
    )


def _unsure(setup: Setup) -> Why:
    """It ran, and the evidence is not enough, or against itself."""
    if setup.run.busy:
        return Why(
            "Another process was using the GPU, which spoils the rate.",
            Remedy("Run it again while nothing else runs.", [again(setup)]),
        )
    if setup.control_wanted or setup.verdict != "indicated" or setup.control == "not engaged":
        return _not_enough(setup)
    if setup.control in (None, "could not run"):
        return Why(
            "The level's control did not run, so that nothing is proven there.",
            Remedy("Run it again.", [again(setup)]),
        )
    return Why(
        "The level's control did not come out as it must, so that nothing is proven there.",
        Remedy("See the control's own finding first."),
    )


def _not_enough(setup: Setup) -> Why:
    """The control is as it must be, and the lines are not enough, or disagree."""
    if setup.calm:
        return _calm(setup)
    if setup.reading.wrong:
        return Why(setup.reading.wrong, Remedy("See TC-401."))
    if setup.reading.unknown:
        return Why(
            "These bits are those of no unit that this version of envcheck knows.",
            Remedy(
                "Update envcheck; where it knows the GPU and still says so, please report the bits.",
                ["envcheck collect --output snapshot.json"],
            ),
        )
    return Why(
        "The lines of evidence are not enough to prove it."
        if setup.verdict != "contradiction"
        else "The lines of evidence contradict each other.",
        Remedy("Run it again on an idle GPU.", [again(setup)]),
    )


def _calm(setup: Setup) -> Why:
    """Nothing is amiss, and what a proof takes beyond that is not there."""
    found = setup.mode.hardware
    if setup.hardware.says == "tensor":
        return Why(
            "Nothing speaks against it; a proof takes the rate as well, which cannot tell on this chip."
        )
    seen = setup.hardware.text.removeprefix("not seen").removeprefix(": ").rstrip(".")
    cause = (
        "Nothing speaks against it; a proof takes the hardware's own word as well, and there is none"
        + (f" ({seen})." if seen else ".")
    )
    names = found.kernel_names
    if isinstance(names, Unavailable) and names.unavailable == "absent":
        return Why(
            cause,
            Remedy(
                "CUPTI tells the kernels' names: install the one of the target's CUDA there, then run it"
                " again.",
                [again(setup)],
            ),
        )
    return Why(cause)


def _could_not_run(setup: Setup) -> Why | None:
    outcome, reason = setup.mode.outcome, setup.mode.reason
    if setup.run.outcome == "busy":
        return Why(
            "The GPU is in use, and was left alone.",
            Remedy(
                "Run it while the GPU is idle, or in spite of that.", [again(setup, "--busy-ok")]
            ),
        )
    if outcome == "out-of-memory":
        return Why(
            "The GPU had no memory left for the smallest matrices.",
            Remedy(
                "See who holds it, and run it again.",
                ["nvidia-smi --query-compute-apps=gpu_bus_id,pid,used_memory,name --format=csv"],
            ),
        )
    if outcome in ("timeout", "crashed"):
        did = "gave no answer" if outcome == "timeout" else "died"
        return Why(f"The process that ran it {did}.", LOOK_FOR_XIDS)
    if outcome == "error" and STICKY.search(reason):
        return Why("The error broke the CUDA context of the process.", LOOK_FOR_XIDS)
    return None
