"""The likely cause of what is not proven, out of the facts around the run, and the remedy."""

from __future__ import annotations

import re

from ..checks.model import Remedy
from ..checks.shell import word
from . import not_engaged
from .circumstances import OVERRIDE, Setup, Why, again

STICKY = re.compile(
    r"ILLEGAL_ADDRESS|ILLEGAL_INSTRUCTION|LAUNCH_FAILED|LAUNCH_TIMEOUT|MISALIGNED_ADDRESS"
    r"|HARDWARE_STACK_ERROR|INVALID_ADDRESS_SPACE|INVALID_PC|ECC_UNCORRECTABLE|CONTEXT_IS_DESTROYED"
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
            f"{', '.join(emulating)}: cuBLAS is told to emulate FP32 on Tensor Cores.",
            Remedy("Unset it.", [f"unset {' '.join(map(word, emulating))}"]),
        )
    if setup.run.level == "L2" and setup.verdict in ("proven", "indicated"):
        return Why(
            f"Neither {OVERRIDE}=0 nor {setup.framework}'s own switch keeps these FP32 products off the"
            " Tensor Cores."
        )
    return _unsure(setup)


def _unsure(setup: Setup) -> Why:
    """It ran, and the evidence is not enough, or against itself."""
    if setup.run.busy:
        return Why(
            "Another process was using the GPU, which spoils rate and counters.",
            Remedy("Run it again while nothing else runs.", [again(setup, "--evidence full")]),
        )
    if not setup.control_ok and not setup.control_wanted and setup.verdict == "indicated":
        return Why(
            "The level's control did not come out as it must, so that nothing is proven there.",
            Remedy("See the control's own finding first."),
        )
    return Why(
        "The lines of evidence are not enough to prove it."
        if setup.verdict != "contradiction"
        else "The lines of evidence contradict each other.",
        Remedy(
            "Run it again on an idle GPU, with the GPU's own counters.",
            [again(setup, "--evidence full")],
        ),
    )


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
