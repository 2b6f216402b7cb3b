"""Whether the processor has what a framework's code uses unasked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..pythons.versions import listed
from .machine import FitMachine
from .reasons import Reasons


def cpu(needed: Sequence[str], machine: FitMachine, reasons: Reasons) -> None:
    """CPU flags are x86's: another architecture's code does without."""
    if not needed or machine.architecture not in ("x86_64", ""):
        return
    if machine.cpu_flags is None:
        reasons.unknown(
            f"It needs a CPU with {_flags(needed)}; whether this one has them is not known."
        )
        return
    missing = [flag for flag in needed if flag not in machine.cpu_flags]
    if missing:
        reasons.refuse(
            "cpu",
            f"needs a CPU with {_flags(missing)}, which this machine's CPU lacks",
            "a virtual machine may hide it: let its CPU model pass it through",
        )


def _flags(flags: Iterable[str]) -> str:
    return listed([flag.upper() for flag in flags])
