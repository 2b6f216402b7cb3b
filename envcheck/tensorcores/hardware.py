"""What the machine itself says of the kernel that ran: its opcodes, its name, NVML's counters.

Each source is optional. A counter above zero is no proof: `HFMA2.MMA`, which constant loads and plain
half-precision code use, goes through the Tensor Cores' pipe. So that opcode counts for nothing, and
counters count from a margin over an idle baseline on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from ..data import table
from ..facts.base import Unavailable, known
from ..facts.micro_kernels import Gpm, LevelRun, Mode, ModeRun
from .kernel_names import classify
from .mode_verdict import Line, Word
from .rates import name, question

# NVML GPM, percent of the time.
ACTIVE = 10.0  # over the idle baseline: products were running on Tensor Cores
QUIET = 1.0  # over it: none were, as with FP32 products
IDLE = 5.0  # of the baseline itself: above it somebody else uses them
SHORTEST = 0.1  # seconds between two samples (nvml.h)
_SHOWN = 60  # characters of a kernel's name


class HardwareSource(NamedTuple):
    """What one source says; ``says`` None: nothing."""

    says: Word | None
    text: str


def hardware(run: LevelRun, mode: ModeRun) -> Line:
    """The line of evidence from all sources that are there; where they disagree, it cannot tell."""
    sources = list(_sources(run, mode))
    if not sources:
        return Line(says="cannot tell", text=_why_not(mode))
    words = {source.says for source in sources if source.says is not None}
    text = "; ".join(source.text for source in sources)
    if len(words) == 1:
        return Line(says=words.pop(), text=text)
    return Line(says="cannot tell", text=f"disagreement: {text}" if words else text)


def _sources(run: LevelRun, mode: ModeRun) -> Iterator[HardwareSource]:
    asked = question(mode)
    found, names = mode.hardware, known(mode.hardware.kernel_names)
    if found.opcodes:
        yield by_opcodes(found.opcodes, asked)
    if names and run.level != "L0":  # at L0 they are our own
        yield by_names(names)
    if found.gpm is not None:
        yield by_counters(found.gpm, asked, run.busy)


def _why_not(mode: ModeRun) -> str:
    found = mode.hardware
    names = found.kernel_names.detail if isinstance(found.kernel_names, Unavailable) else ""
    reasons = [reason for reason in (found.opcodes_reason, names, found.gpm_reason) if reason]
    return "not seen" + (f": {reasons[0].splitlines()[0]}" if reasons else "")


@cache
def _units() -> Mapping[str, tuple[str, frozenset[str]]]:
    return {
        row["opcode"]: (row["unit"], frozenset(row["modes"].split())) for row in table("opcodes")
    }


def by_opcodes(counts: Mapping[str, int], mode: Mode) -> HardwareSource:
    """From the instructions of the kernel that the driver made: {"HMMA": 64}; unlisted ones are aside."""
    units = _units()
    there = {op: count for op, count in counts.items() if count > 0 and op in units}
    tensor = {op: count for op, count in there.items() if units[op][0] == "tensor"}
    own = {op: count for op, count in tensor.items() if mode == "fp32" or mode in units[op][1]}
    cores = {
        op: count
        for op, count in there.items()
        if units[op][0] == "cuda core" and mode in units[op][1]
    }
    said = (
        ", ".join(f"{count} {op}" for op, count in (tensor | cores).items())
        or "no product's opcode"
    )
    if own and sum(own.values()) > sum(cores.values()):
        return HardwareSource("tensor", said)
    if tensor and not own:
        return HardwareSource(
            None, f"{said}: {name(mode)} is emulated on Tensor Cores of another type"
        )
    if tensor:
        return HardwareSource(None, f"{said}: mostly others")
    return HardwareSource("not tensor" if cores else None, said)


def by_names(names: list[str]) -> HardwareSource:
    """From the names of all kernels that ran; auxiliary ones are aside."""
    found = [(classify(one), one) for one in names]
    found = [(kind, one) for kind, one in found if kind != "auxiliary"]
    if not found:
        return HardwareSource(None, "only auxiliary kernels")
    kinds = {kind for kind, _ in found}
    said = ", ".join(f"{_short(one)} ({kind})" for kind, one in found[:2])
    said += f" and {len(found) - 2} more" if len(found) > 2 else ""
    if kinds == {"tensor"}:
        return HardwareSource("tensor", said)
    return HardwareSource("not tensor" if kinds == {"simt"} else None, said)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def by_counters(gpm: Gpm, mode: Mode, busy: bool) -> HardwareSource:
    """From NVML's GPM, which counts for the whole device."""
    counter, active, idle = _counter(gpm, mode)
    if active is None:
        return HardwareSource(None, "GPM: not measured")
    said = f"GPM: {counter} active {active:.0f} % of the time"
    if idle is None:
        return HardwareSource(None, f"{said}, and no idle baseline")
    said += f", idle {idle:.0f} %"
    if busy or idle > IDLE:
        return HardwareSource(None, f"{said}: somebody else uses the GPU")
    if gpm.seconds < SHORTEST:
        return HardwareSource(None, f"{said}, over {gpm.seconds:g} s only")
    if active - idle >= ACTIVE:
        return HardwareSource("tensor", said)
    return HardwareSource("not tensor" if active - idle <= QUIET else None, said)


def _counter(gpm: Gpm, mode: Mode) -> tuple[str, float | None, float | None]:
    """(name, active, idle) of the mode's own counter, else of any Tensor Core's."""
    if mode == "int8" and known(gpm.imma) is not None:
        return "IMMA", known(gpm.imma), known(gpm.idle_imma)
    if mode in ("tf32", "fp16", "bf16") and known(gpm.hmma) is not None:
        return "HMMA", known(gpm.hmma), known(gpm.idle_hmma)
    return "Tensor Cores", known(gpm.any_tensor), known(gpm.idle_any_tensor)
