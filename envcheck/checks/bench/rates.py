"""The checks on how fast a bench's rows are: beside references, GPUs of the same name, and themselves."""

from __future__ import annotations

from ...bench.records import RowResult
from ..reading import Skip, SnapshotView
from ..verdicts import Cause, Finding, Passed, Verdicts, check, fail, warn
from . import common
from .common import HELD_BACK, NOTHING_RUNS, bench, slow_remedy, target, timed, worst

_POOR = 0.7  # of what GPUs do alone; published machines reach 0.9 and more with this model
_SCALED = "resnet50"  # whose gradients are small beside its work
_SCALED_BATCH = 64
_SLOW = "{row} trains {rate}{verdict}.{suspect}"

_THAN_IT_SHOULD = "{row} is {below:.0%} below its reference"
_THAN_OTHERS = "{row} is {below:.0%} below GPUs of its name"
FAR_BELOW_REFERENCE = fail("far-below-reference", _THAN_IT_SHOULD, _SLOW)
BELOW_REFERENCE = warn("below-reference", _THAN_IT_SHOULD, _SLOW)
FAR_BELOW_OTHERS = fail("far-below-other-gpus", _THAN_OTHERS, _SLOW)
BELOW_OTHERS = warn("below-other-gpus", _THAN_OTHERS, _SLOW)
SCALES_BADLY = warn(
    "scales-badly",
    "{gpus} GPUs train at {efficiency:.0%} of what they do alone",
    "{row}: {rate:,.0f} {unit}, {efficiency:.0%} of what its GPUs do alone.{slowest}",
    "Look at what joins the GPUs, at NCCL over it, and at whether one of them is slow.",
)


@check(
    "BEN-001",
    title="Models train as fast as they should",
    causes=[FAR_BELOW_REFERENCE, BELOW_REFERENCE],
    about=(
        "A row is compared with a published rate of the same GPU, framework, precision, compiler, batch"
        " and number of GPUs, or with a baseline: from 5 % below it is a warning, from 15 % a failure,"
        " unless its repetitions differ by more than that. The first suspect comes from NVML's samples"
        " during the run."
    ),
    sources=(
        "throughput_reference.csv, a source in every row",
        "NVML API reference: clocks event reasons",
    ),
    follows=(*NOTHING_RUNS, *HELD_BACK, "BEN-003"),
)
def rows_are_as_fast_as_references(view: SnapshotView) -> Verdicts:
    rows = [one for one in timed(view) if one.verdict_by in ("published", "baseline")]
    if not rows:
        raise Skip("no reference fits these rows")
    for one in worst([one for one in rows if one.verdict in ("warn", "fail")]):
        yield _slow(view, one, FAR_BELOW_REFERENCE, BELOW_REFERENCE)
    fast = [one for one in rows if one.verdict == "pass"]
    if fast:
        first = max(fast, key=lambda one: one.share or 0.0)
        yield Passed(f"{first.run.row.name}: {first.verdict_words}")


@check(
    "BEN-002",
    title="GPUs of one name train equally fast",
    causes=[FAR_BELOW_OTHERS, BELOW_OTHERS],
    about=(
        "The same row runs on each GPU alone. A GPU from 5 % below the median of the others of its name"
        " is a warning, from 15 % a failure, unless its repetitions differ by more than that."
    ),
    sources=(
        "envcheck bench: healthy H100 of many machines differ by 2 % (throughput_reference.csv)",
    ),
    follows=(*NOTHING_RUNS, *HELD_BACK, "GPU-021", "GPU-022", "GPU-024", "MEM-002"),
)
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
        yield _slow(view, one, FAR_BELOW_OTHERS, BELOW_OTHERS)
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


@check(
    "BEN-007",
    title="GPUs train together as they do alone",
    causes=[SCALES_BADLY],
    about=(
        "The rate of one job on all GPUs (MirroredStrategy, torch.distributed) is compared with the sum"
        " of their rates alone in the same row: below 70 % with ResNet-50, whose gradients are small"
        " compared with its work, is a warning."
    ),
    sources=("github.com/NVIDIA/DeepLearningExamples: a machine with 1, 2, 4, 8 and 16 GPUs",),
    follows=(*NOTHING_RUNS, *HELD_BACK, "BEN-002", "ACC-012", "ACC-013", "ACC-014", "MEM-005"),
)
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
            SCALES_BADLY,
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
