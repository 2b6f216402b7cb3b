"""Errors that came while a soak ran: of the memory, and Xids."""

from __future__ import annotations

from ...data.kernel import xids
from ..declared import declared_causes
from ..driver_state import REPORT
from ..reading import CouldNotRun, Skip, SnapshotView
from ..verdicts import Finding, Passed, Remedy, Verdicts, check, unjudged
from .common import Soaked, after, soak_check, soaked

CAUSE = declared_causes(__name__)

_MEMORY = {
    "ecc_uncorrected": "uncorrectable ECC errors",
    "remap_uncorrectable": "rows remapped for uncorrectable errors",
    "retired_pages": "retired pages",
}
_WAITING = {
    "remap_pending": "rows that wait to be remapped",
    "remap_failed": "rows that could not be remapped",
}
_CORRECTED = {"remapped_rows": ("remapped rows", 1), "ecc_corrected": ("corrected errors", 10)}


@soak_check("SOAK-003")
def no_memory_error(view: SnapshotView, one: Soaked) -> Finding | str:
    one.need_samples("memory errors")
    latest = one.gpu.errors_after
    if not any(name in latest for name in (*_MEMORY, *_WAITING, "ecc_corrected")):
        raise Skip("NVML counts no memory errors of this GPU")
    bad = {name: number for name in _MEMORY if (number := one.grown(name))}
    bad |= {name: latest[name] for name in _WAITING if latest.get(name)}
    words = _MEMORY | _WAITING
    cause = (
        CAUSE["memory-errors-under-load"] if bad else CAUSE["corrected-memory-errors-under-load"]
    )
    for name, (called, least) in _CORRECTED.items():
        if not bad and one.grown(name) >= least:
            bad, words = {name: one.grown(name)}, {name: called}
    if not bad:
        return ""
    shown = [one.evidence(view, f"errors_after.{name}", f"{latest[name]:g}") for name in bad]
    errors = ", ".join(f"{words[name]}: {number:g}" for name, number in bad.items())
    return one.found(cause, *shown, errors=errors)


@check("SOAK-004")
def no_xid(view: SnapshotView) -> Verdicts:
    for one in soaked(view):
        for number in dict.fromkeys(seen.number for seen in one.gpu.xids):
            yield _xid(view, one, number)
        if one.gpu.xids:
            continue
        try:
            one.need_samples("Xids")
            if not one.gpu.errors_after.get("xid_events"):
                raise CouldNotRun("Xids: NVML did not report events of this GPU until the end")
            yield Passed("")
        except CouldNotRun as why:
            yield unjudged(why, [one.subject])


def _xid(view: SnapshotView, one: Soaked, number: int) -> Finding:
    known = xids().get(number)
    times = [seen.seconds for seen in one.gpu.xids if seen.number == number]
    remedy = known.remedy if known and known.remedy else "Look it up in NVIDIA's catalog."
    # An application's fault under a load of envcheck's own is the GPU's.
    minor = known is not None and known.severity == "warn" and not known.of_application
    return (CAUSE["minor-xid-under-load"] if minor else CAUSE["xid-under-load"]).found(
        [one.subject],
        [one.evidence(view, "xids", f"{number} {after(times[0])}")],
        advice=Remedy(remedy, ["sudo dmesg -T | grep -i xid", REPORT]),
        xid=number,
        when=after(times[0]),
        often=f", {len(times)} times" if len(times) > 1 else "",
        meaning=known.meaning if known else "not in envcheck's table",
    )
