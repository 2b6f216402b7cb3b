"""Errors that came while a soak ran: memory, Xids, the link."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.kernel import xids
from ...data.soak_limits import soak_limit
from ...facts.soak import SoakGpu
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..registry import check
from .common import Soaked, after, soaked

_MEMORY = {
    "ecc_uncorrected": "uncorrectable ECC errors",
    "remap_uncorrectable": "rows remapped for uncorrectable errors",
    "retired_pages": "retired pages",
    "remap_pending": "rows that wait to be remapped",
    "remap_failed": "rows that could not be remapped",
}


def grown(gpu: SoakGpu, name: str) -> float:
    """By how much a counter grew from the soak's begin to its end."""
    return max(0.0, gpu.errors_after.get(name, 0.0) - gpu.errors_before.get(name, 0.0))


@check(
    "SOAK-003",
    title="No memory error came",
    problem="had memory errors under load",
    about="Uncorrectable ECC errors, rows remapped for them and retired pages that came while the soak ran"
    " are failures, corrected errors a warning from ten on: memory that begins to err under load errs more."
    " What was there before is told by GPU-002, GPU-003 and GPU-004.",
    sources=("docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt",),
)
def no_memory_error(view: SnapshotView) -> Iterator[Verdict]:
    for one in soaked(view):
        bad = [(name, number) for name in _MEMORY if (number := grown(one.gpu, name))]
        corrected = grown(one.gpu, "ecc_corrected") + grown(one.gpu, "remapped_rows")
        if bad:
            told = ", ".join(f"{_MEMORY[name]}: {number:g}" for name, number in bad)
            yield _memory(view, one, "fail", told, [name for name, _number in bad])
        elif corrected >= _FEW:
            names = ["ecc_corrected", "remapped_rows"]
            yield _memory(view, one, "warn", f"corrected errors: {corrected:g}", names)
    yield Passed("")


_FEW = 10  # corrected errors that a healthy board may see in a night


def _memory(view: SnapshotView, one: Soaked, level: str, told: str, names: list[str]) -> Finding:
    return Finding(
        "fail" if level == "fail" else "warn",
        f"Memory errors came under load ({told}): what was computed with that memory is lost, and more of"
        " them follow.",
        [one.subject],
        [
            one.evidence(view, f"errors_after.{name}", f"{one.gpu.errors_after.get(name, 0):g}")
            for name in names
            if grown(one.gpu, name)
        ],
        Remedy(
            "Reset the GPU, so that rows are remapped, and repeat the soak; where errors come again, ask for"
            " a replacement (RMA).",
            [
                f"nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT -i {one.selected}",
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
    for one in soaked(view):
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
    yield Passed("")


@check(
    "SOAK-005",
    title="The PCIe links held",
    problem="had PCIe errors under load",
    about="Replays of PCIe packets that come at more than one a minute while the soak runs are a warning, and"
    " so is any NVLink error; a link that lost lanes on the way is a failure. Contacts that move as a board"
    " warms up show so.",
    sources=("nvml.h, nvmlDeviceGetPcieReplayCounter", "envcheck/data/soak_limits.csv"),
    follows=("GPU-018",),
)
def links_held(view: SnapshotView) -> Iterator[Verdict]:
    for one in soaked(view):
        gpu = one.gpu
        widths = [minute.pcie_width for minute in gpu.minutes if minute.pcie_width is not None]
        before = gpu.errors_before.get("pcie_width")
        hours = sum(minute.seconds for minute in gpu.minutes) / 3600.0
        replays, errors = grown(gpu, "pcie_replays"), grown(gpu, "nvlink_errors")
        if before is not None and widths and min(widths) < before:
            told = f"the PCIe link fell from {before:g} to {min(widths)} lanes"
            yield _link(view, one, "fail", told, "errors_before.pcie_width", f"{before:g}")
        elif hours and replays > max(1.0, hours) * soak_limit("replays_per_hour"):
            told = f"{replays:,.0f} packets on the PCIe link were sent again"
            yield _link(view, one, "warn", told, "errors_after.pcie_replays", f"{replays:g} more")
        elif errors:
            told = f"{errors:,.0f} NVLink errors came"
            yield _link(view, one, "warn", told, "errors_after.nvlink_errors", f"{errors:g} more")
    yield Passed("")


def _link(
    view: SnapshotView, one: Soaked, level: str, told: str, field: str, value: str
) -> Finding:
    return Finding(
        "fail" if level == "fail" else "warn",
        f"Under load {told}: data arrives late, or at a part of the link's speed.",
        [one.subject],
        [one.evidence(view, field, value)],
        Remedy(
            "Seat the board and its riser or cable anew, clean the contacts, and repeat the soak.",
            [
                f"nvidia-smi -q -d PERFORMANCE -i {one.selected}",
                f"nvidia-smi --query-gpu=pcie.link.width.current,pcie.link.gen.current"
                f" --format=csv -i {one.selected}",
            ],
        ),
        told,
    )
