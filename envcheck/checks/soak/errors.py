"""Errors that came while a soak ran: of the memory, and Xids."""

from __future__ import annotations

from ...data.kernel import xids
from ...facts.soak import SoakGpu
from ..driver_state import REPORT
from ..reading import CouldNotRun, Skip, SnapshotView
from ..verdicts import Cause, Passed, Remedy, Verdicts
from .common import Soaked, after, soak_check

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


_REPEAT = (
    "Reset the GPU, so that rows are remapped, and repeat the soak; if errors come again, ask for a"
    " replacement (RMA).",
    (
        "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT -i {gpu}",
        REPORT,
        "sudo nvidia-smi --gpu-reset -i {gpu}",
    ),
)
BAD_MEMORY = Cause(
    "memory-errors-under-load",
    "fail",
    "had memory errors under load ({errors})",
    "The memory had errors under load ({errors}): what was computed with that memory may be wrong.",
    *_REPEAT,
)
WEAK_MEMORY = Cause(
    "corrected-memory-errors-under-load",
    "warn",
    "had memory errors under load ({errors})",
    "The memory had errors under load ({errors}): more of them may follow.",
    *_REPEAT,
)


@soak_check(
    "SOAK-003",
    title="No memory errors occurred",
    causes=(BAD_MEMORY, WEAK_MEMORY),
    about="Failures are uncorrectable ECC errors, rows remapped for them and retired pages during the soak."
    " Warnings are rows remapped for corrected errors, and ten corrected errors. A remapping that is"
    " pending or has failed is a failure whenever it began.",
    sources=("docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt",),
)
def no_memory_error(view: SnapshotView, one: Soaked) -> Verdicts:
    one.need_samples("memory errors")
    latest = one.gpu.errors_after
    read = [name for name in (*_MEMORY, *_WAITING, "ecc_corrected") if name in latest]
    if not read:
        raise Skip("NVML counts no memory errors of this GPU")
    bad = {name: number for name in _MEMORY if (number := grown(one.gpu, name))}
    bad |= {name: latest[name] for name in _WAITING if latest.get(name)}
    rows = grown(one.gpu, "remapped_rows")
    corrected = grown(one.gpu, "ecc_corrected")
    named = _MEMORY | _WAITING
    cause, errors = BAD_MEMORY, [f"{named[name]}: {number:g}" for name, number in bad.items()]
    if not bad and (rows or corrected >= _FEW):
        cause = WEAK_MEMORY
        bad = {"remapped_rows": rows} if rows else {"ecc_corrected": corrected}
        errors = [f"remapped rows: {rows:g}" if rows else f"corrected errors: {corrected:g}"]
    if bad:
        shown = [one.evidence(view, f"errors_after.{name}", f"{latest[name]:g}") for name in bad]
        yield one.found(cause, shown, errors=", ".join(errors))
    else:
        yield Passed("")


_XID = (
    "had Xid {xid} under load",
    "Xid {xid} under load {when}{often}: {meaning}.",
)
XID = Cause("xid-under-load", "fail", *_XID)
SUSPECT_XID = Cause("minor-xid-under-load", "warn", *_XID)


@soak_check(
    "SOAK-004",
    title="No Xid occurred",
    causes=(XID, SUSPECT_XID),
    about="Xids during the soak, by the table of Xids: those of applications (13, 31, 43, 45) are failures"
    " too, since the only application was envcheck's own, with products that run on every healthy GPU.",
    sources=("NVIDIA Xid catalog, docs.nvidia.com/deploy/xid-errors",),
)
def no_xid(view: SnapshotView, one: Soaked) -> Verdicts:
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
        yield (
            SUSPECT_XID if known_xid is not None and known_xid.severity == "warn" else XID
        ).found(
            [one.subject],
            [one.evidence(view, "xids", f"{number} {after(times[0])}")],
            advice=Remedy(remedy, ["sudo dmesg -T | grep -i xid", REPORT]),
            xid=number,
            when=after(times[0]),
            often=often,
            meaning=meaning,
        )
    if not numbers:
        one.need_samples("Xids")
        if not one.gpu.errors_after.get("xid_events"):
            raise CouldNotRun("Xids: NVML did not report events of this GPU until the end")
        yield Passed("")
