"""What the machine itself says of the kernel that ran: its opcodes, or its name.

Each source is optional. `HFMA2.MMA` counts for nothing: plain half-precision code uses it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from ..data import table
from ..facts.base import Unavailable, known
from ..facts.micro_kernels import LevelRun, Mode, ModeRun
from .kernel_names import classify
from .mode_verdict import Line, Word
from .rates import name, question

_SHOWN = 60  # characters of a kernel's name


class HardwareSource(NamedTuple):
    """What one source says; ``says`` None: nothing."""

    says: Word | None
    text: str


def hardware(run: LevelRun, mode: ModeRun) -> Line:
    """The line of evidence from the opcodes or the names that are there."""
    found, names = mode.hardware, known(mode.hardware.kernel_names)
    if found.opcodes:
        source = by_opcodes(tuple(found.opcodes.items()), question(mode))
    elif names and run.level != "L0":  # at L0 they are our own
        source = by_names(names)
    else:
        return Line(says="cannot tell", text=_why_not(mode))
    return Line(says=source.says or "cannot tell", text=source.text)


def _why_not(mode: ModeRun) -> str:
    found = mode.hardware
    names = found.kernel_names.detail if isinstance(found.kernel_names, Unavailable) else ""
    reasons = [reason for reason in (found.opcodes_reason, names) if reason]
    return "not seen" + (f": {reasons[0].splitlines()[0]}" if reasons else "")


@cache
def _units() -> Mapping[str, tuple[str, frozenset[str]]]:
    return {
        row["opcode"]: (row["unit"], frozenset(row["modes"].split())) for row in table("opcodes")
    }


@lru_cache(maxsize=256)  # equal GPUs run equal kernels
def by_opcodes(counts: tuple[tuple[str, int], ...], mode: Mode) -> HardwareSource:
    """From the instructions of the kernel that the driver made: ("HMMA", 64); unlisted ones are aside."""
    units = _units()
    there = {op: count for op, count in counts if count > 0 and op in units}
    tensor = {op: count for op, count in there.items() if units[op][0] == "tensor"}
    own = {op: count for op, count in tensor.items() if mode == "fp32" or mode in units[op][1]}
    cores = {
        op: count
        for op, count in there.items()
        if units[op][0] == "cuda core" and mode in units[op][1]
    }
    shown = ", ".join(f"{count} {op}" for op, count in (tensor | cores).items())
    text = shown or "no product's opcode"
    if own and sum(own.values()) > sum(cores.values()):
        return HardwareSource("tensor", text)
    if tensor and not own:
        return HardwareSource(
            None, f"{text}: {name(mode)} is emulated on Tensor Cores of another type"
        )
    if tensor:
        return HardwareSource(None, f"{text}: mostly others")
    return HardwareSource("not tensor" if cores else None, text)


def by_names(names: list[str]) -> HardwareSource:
    """From the names of all kernels that ran; auxiliary ones are aside."""
    found = [(classify(one), one) for one in names]
    found = [(kind, one) for kind, one in found if kind != "auxiliary"]
    if not found:
        return HardwareSource(None, "only auxiliary kernels")
    kinds = {kind for kind, _ in found}
    text = ", ".join(f"{_short(one)} ({kind})" for kind, one in found[:2])
    text += f" and {len(found) - 2} more" if len(found) > 2 else ""
    if kinds == {"tensor"}:
        return HardwareSource("tensor", text)
    return HardwareSource("not tensor" if kinds == {"simt"} else None, text)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
