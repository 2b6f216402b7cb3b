"""Errors that came while a soak ran: of the memory, and Xids."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.kernel import xids
from ...facts.missing import CouldNotRun, Skip
from ...facts.soak import SoakGpu
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..driver_state import REPORT
from ..registry import check
from .common import Soaked, after, each_soaked

_MEMORY = {
    "ecc_uncorrected": "uncorrectable ECC errors",
    "remap_uncorrectable": "rows remapped for uncorrectable errors",
    "retired_pages": "retired pages",
}
_WAITING = {
    "remap_pending": "rows that wait to be remapped",
    "remap_failed": "rows that could not be remapped",
}
_FEW = 10  # corrected errors that a healthy board may see in a night


def grown(gpu: SoakGpu, name: str) -> float:
    """By how much a counter grew from the soak's begin to its end; 0 where it was not read twice."""
    first, last = gpu.errors_before.get(name), gpu.errors_after.get(name)
    return 0.0 if first is None or last is None else max(0.0, last - first)


@check(
    "SOAK-003",
    title="No memory error came",
    problem="had memory errors under load",
    about="Uncorrectable ECC errors, rows remapped for them and retired pages that came while the soak ran"
    " are failures; rows remapped for corrected errors are a warning, and so are ten corrected errors:"
    " memory that begins to err under load errs more. A remapping that waits for a reset or has failed is a"
    " failure whenever it began. Other errors from before the soak are judged by GPU-002, GPU-003 and"
    " GPU-004.",
    sources=("docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt",),
)
def no_memory_error(view: SnapshotView) -> Iterator[Verdict]:
    return each_soaked(view, lambda one: _memory_errors(view, one))


def _memory_errors(view: SnapshotView, one: Soaked) -> Iterator[Verdict]:
    one.need_samples("memory errors")
    latest = one.gpu.errors_after
    read = [name for name in (*_MEMORY, *_WAITING, "ecc_corrected") if name in latest]
    if not read:
        raise Skip("NVML counts no memory errors of this GPU")
    bad = {name: number for name in _MEMORY if (number := grown(one.gpu, name))}
    bad |= {name: latest[name] for name in _WAITING if latest.get(name)}
    rows = grown(one.gpu, "remapped_rows")
    corrected = grown(one.gpu, "ecc_corrected")
    if bad:
        told = ", ".join(
            f"{(_MEMORY | _WAITING)[name]}: {number:g}" for name, number in bad.items()
        )
        yield _memory(view, one, "fail", told, list(bad))
    elif rows:
        yield _memory(view, one, "warn", f"remapped rows: {rows:g}", ["remapped_rows"])
    elif corrected >= _FEW:
        yield _memory(view, one, "warn", f"corrected errors: {corrected:g}", ["ecc_corrected"])
    else:
        yield Passed("")


def _memory(view: SnapshotView, one: Soaked, level: str, told: str, names: list[str]) -> Finding:
    fail = level == "fail"
    means = "what was computed with that memory may be wrong" if fail else "more of them may follow"
    return Finding(
        "fail" if fail else "warn",
        f"The memory had errors under load ({told}): {means}.",
        [one.subject],
        [
            one.evidence(view, f"errors_after.{name}", f"{one.gpu.errors_after[name]:g}")
            for name in names
        ],
        Remedy(
            "Reset the GPU, so that rows are remapped, and repeat the soak; where errors come again, ask for"
            " a replacement (RMA).",
            [
                f"nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT -i {one.selected}",
                REPORT,
                f"sudo nvidia-smi --gpu-reset -i {one.selected}",
            ],
        ),
        f"had memory errors under load ({told})",
    )


@check(
    "SOAK-004",
    title="No Xid came",
    problem="had Xids under load",
    about="Xids that the driver told while the soak ran, by the table of Xids: those that stand for a broken"
    " board or driver are failures, those of applications (13, 31, 43, 45) too, since the one application was"
    " envcheck's own, with products that run on every healthy GPU; those that are news alone are not.",
    sources=("NVIDIA Xid catalog, docs.nvidia.com/deploy/xid-errors",),
)
def no_xid(view: SnapshotView) -> Iterator[Verdict]:
    return each_soaked(view, lambda one: _xids(view, one))


def _xids(view: SnapshotView, one: Soaked) -> Iterator[Verdict]:
    numbers = dict.fromkeys(seen.number for seen in one.gpu.xids)
    for number in numbers:
        known_xid = xids().get(number)
        times = [seen.seconds for seen in one.gpu.xids if seen.number == number]
        meaning = known_xid.meaning if known_xid else "not in envcheck's table"
        often = f", {len(times)} times" if len(times) > 1 else ""
        remedy = (
            known_xid.remedy
            if known_xid and known_xid.remedy
            else "Look it up in NVIDIA's catalog."
        )
        yield Finding(
            "warn" if known_xid is not None and known_xid.severity == "warn" else "fail",
            f"Xid {number} under load {after(times[0])}{often}: {meaning}.",
            [one.subject],
            [one.evidence(view, "xids", f"{number} {after(times[0])}")],
            Remedy(remedy, ["sudo dmesg -T | grep -i xid", "sudo nvidia-bug-report.sh"]),
            f"had Xid {number} under load",
        )
    if not numbers:
        one.need_samples("Xids")
        if not one.gpu.errors_after.get("xid_events"):
            raise CouldNotRun("Xids: NVML did not report events of this GPU until the end")
        yield Passed("")
