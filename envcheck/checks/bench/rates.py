"""The checks on how fast a bench's rows are: beside references, GPUs of the same name, and themselves."""

from __future__ import annotations

from ...bench.records import RowResult
from ..declared import declared_causes
from ..reading import Skip, SnapshotView
from ..verdicts import Cause, Finding, Passed, Verdicts, check
from . import common
from .common import bench, slow_remedy, target, timed, worst

CAUSE = declared_causes(__name__)

_POOR = 0.7  # of what GPUs do alone; published machines reach 0.9 and more with this model
_SCALED = "resnet50"  # whose gradients are small beside its work
_SCALED_BATCH = 64


@check("BEN-001")
def rows_are_as_fast_as_references(view: SnapshotView) -> Verdicts:
    rows = [one for one in timed(view) if one.verdict_by in ("published", "baseline")]
    if not rows:
        raise Skip("no reference fits these rows")
    for one in worst([one for one in rows if one.verdict in ("warn", "fail")]):
        yield _slow(view, one, CAUSE["far-below-reference"], CAUSE["below-reference"])
    fast = [one for one in rows if one.verdict == "pass"]
    if fast:
        first = max(fast, key=lambda one: one.share or 0.0)
        yield Passed(f"{first.run.row.name}: {first.verdict_words}")


@check("BEN-002")
def gpus_train_equally_fast(view: SnapshotView) -> Verdicts:
    rows = [
        one
        for one in timed(view)
        if any(reference.kind == "other-gpu" for reference in one.references)
    ]
    if not rows:
        raise Skip("no two GPUs of one name ran the same row alone")
    slow = [
        one for one in rows if one.verdict in ("warn", "fail") and one.verdict_by == "other-gpu"
    ]
    for one in worst(slow):
        yield _slow(view, one, CAUSE["far-below-other-gpus"], CAUSE["below-other-gpus"])
    rates = [one.rate.median for one in rows if one.rate is not None]
    yield Passed(f"{len(rows)} GPUs, {min(rates):,.0f} to {max(rates):,.0f} a second")


def _slow(view: SnapshotView, one: RowResult, far: Cause, near: Cause) -> Finding:
    return common.found(
        view,
        far if one.verdict == "fail" else near,
        one,
        advice=slow_remedy(view, one),
        rate="" if one.rate is None else f"{one.rate.median:,.0f} {one.rate.unit}, ",
        verdict=one.verdict_words,
        below=1 - (one.share or 0.0),
    )


@check("BEN-007")
def gpus_scale(view: SnapshotView) -> Verdicts:
    found = bench(view)
    if not found.scaling:
        raise Skip("no row ran on several GPUs as one job, and on one alone")
    rows = {one.run.row.name: one for one in found.rows}
    for job in found.scaling:
        one = rows[job.name]
        judged = one.run.row.model == _SCALED and one.run.row.batch >= _SCALED_BATCH
        if not judged or job.efficiency >= _POOR or one.unsteady:
            continue
        yield common.found(
            view,
            CAUSE["scales-badly"],
            one,
            commands=["nvidia-smi topo -m", f"envcheck doctor {target(view)}--level deep"],
            gpus=job.gpus,
            rate=job.rate,
            unit=job.unit,
            efficiency=job.efficiency,
            slowest=f" {job.slowest_words}." if job.slowest_words else "",
        )
    best = max(found.scaling, key=lambda job: job.efficiency)
    yield Passed(f"{best.name}: {best.efficiency:.0%} of what its GPUs do alone")
