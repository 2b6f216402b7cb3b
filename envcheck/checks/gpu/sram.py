"""The check on uncorrectable errors of the GPU's on-chip memory (SRAM)."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import Skip
from ...facts.view import SnapshotView, need
from ...findings.model import Passed, Remedy, Verdict
from ..driver_state import NO_GPUS
from ..gpus import address_of, finding, judge_gpus, reset
from ..registry import check

MEMORY_ERRORS = "NVIDIA GPU Memory Error Management"

# What the fields are called, how the memory is protected, and how many errors in one bank NVIDIA lets pass.
KINDS = (("parity", "parity", 4), ("secded", "SEC-DED", 2))


@check(
    "GPU-031",
    title="No uncorrectable error in on-chip memory",
    problem="has uncorrectable errors in on-chip memory",
    about="Caches, register files and other memory on the chip (SRAM) are protected by parity or by SEC-DED;"
    " unlike memory on the board they have no spare rows, so a reset clears an error and repairs nothing."
    " One since the driver was loaded has killed the program that met it: a failure. One in the board's"
    " life alone is a warning. More than four (parity) or two (SEC-DED) in one bank set the threshold flag,"
    " NVIDIA's criterion for a replacement (GPU-005).",
    sources=(f"{MEMORY_ERRORS}, RMA Policy", "nvidia-smi(1), ECC Errors", "XID 48, 94, 95"),
    follows=(*NO_GPUS, "GPU-005"),
)
def sram_is_clean(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _sram(view, gpu))


def volatile(gpu: Gpu) -> int:
    """Those since the driver was loaded that are told."""
    return sum(known(getattr(gpu, f"sram_{kind}_volatile")) or 0 for kind, _name, _most in KINDS)


def aggregate(gpu: Gpu) -> int:
    """Those of the board's life that are told."""
    return sum(known(getattr(gpu, f"sram_{kind}_aggregate")) or 0 for kind, _name, _most in KINDS)


def _sram(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    counters = [
        getattr(gpu, f"sram_{kind}_{period}")
        for kind, _name, _most in KINDS
        for period in ("volatile", "aggregate")
    ]
    if all(known(counter) is None for counter in counters):
        for counter in counters:
            need(counter, "errors of on-chip memory")
        raise Skip("errors of on-chip memory are not told")
    clean = True
    for kind, name, most in KINDS:
        recent = known(getattr(gpu, f"sram_{kind}_volatile")) or 0
        ever = known(getattr(gpu, f"sram_{kind}_aggregate")) or 0
        fields = f"sram_{kind}_volatile sram_{kind}_aggregate sram_threshold_exceeded"
        if recent:
            clean = False
            yield finding(
                view,
                "fail",
                gpu,
                f"{_errors(recent, name)} in on-chip memory since the driver was loaded: the programs that"
                " met"
                f" {'it' if recent == 1 else 'them'} died or computed wrongly.",
                fields,
                reset(
                    gpu,
                    "A reset clears the error and repairs nothing, for on-chip memory has no spare rows:"
                    " where it"
                    f" comes back (more than {most} in one bank), run the field diagnostic and ask for an"
                    " RMA.",
                ),
            )
        elif ever:
            clean = False
            yield finding(
                view,
                "warn",
                gpu,
                f"{_errors(ever, name)} in on-chip memory in the board's life, none since the driver was"
                " loaded:"
                f" more than {most} in one bank call for a replacement.",
                fields,
                Remedy(
                    "Nothing now; look again after some days of load.",
                    [f"nvidia-smi -q -d ECC -i {address_of(gpu)}"],
                ),
                "has had errors in on-chip memory",
            )
    if clean:
        yield Passed("no uncorrectable error in on-chip memory")


def _errors(count: int, name: str) -> str:
    return f"{count} uncorrectable {name} error{'' if count == 1 else 's'}"
