"""The checks on how fast a bench's rows are: beside what should be, their peers, and themselves."""

from __future__ import annotations

from collections.abc import Iterator

from ...bench.records import RowResult
from ...facts.missing import Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..registry import check
from .common import (
    HELD_BACK,
    NOTHING_RUNS,
    again,
    bench,
    evidence,
    folded,
    gpus,
    input_remedy,
    slow_remedy,
    subjects,
    target,
    timed,
)

_POOR = 0.7  # of what GPUs do alone; published machines reach 0.9 and more with this model
_SCALED = "resnet50"  # whose gradients are small beside its work
_SCALED_BATCH = 64


@check(
    "BEN-001",
    title="Models train as fast as they should",
    problem="trains more slowly than it should",
    about=(
        "A row of a bench, held against a figure that fits: a published one of the same GPU (memory and "
        "form, too), framework, precision, compiler, batch and number of GPUs, or a baseline from a machine "
        "that was well. From 5 % below it is a warning, from 15 % a failure, and no row is judged whose "
        "own repetitions differ by more than its distance. Published machines trained on images that were "
        "read or on synthetic ones, which is not always said: data that is there already cannot be slower, "
        "so that a rate below them counts all the same. Figures of another batch or GPU are context. The "
        "first suspect is what NVML's samples show while it ran: another process, throttling, clocks, heat, "
        "the link, the power limit."
    ),
    sources=(
        "throughput_reference.csv, a source in every row",
        "NVML API reference: clocks event reasons",
    ),
    follows=(*NOTHING_RUNS, *HELD_BACK, "BEN-003", "BEN-006"),
)
def rows_are_as_fast_as_they_should_be(view: SnapshotView) -> Iterator[Verdict]:
    rows = [one for one in timed(view) if one.verdict_by in ("published", "baseline")]
    if not rows:
        raise Skip("nothing is known that these rows could be held against")
    slow = [one for one in rows if one.verdict in ("warn", "fail")]
    for one in folded(slow):
        yield _slow(view, one)
    well = [one for one in rows if one.verdict == "pass"]
    if well and not slow:
        first = max(well, key=lambda one: one.share or 0.0)
        yield Passed(f"{first.run.row.name}: {first.verdict_words}")


@check(
    "BEN-002",
    title="GPUs of one name train alike",
    problem="trains more slowly than GPUs of its name",
    about=(
        "The same row on each GPU alone. A GPU from 5 % below the median of the others of its name is a "
        "warning, from 15 % a failure, unless its repetitions differ by more than that."
    ),
    sources=(
        "envcheck bench: healthy H100 of many machines differ by 2 % (throughput_reference.csv)",
    ),
    follows=(*NOTHING_RUNS, *HELD_BACK, "GPU-021", "GPU-022", "GPU-024", "MEM-002"),
)
def gpus_train_alike(view: SnapshotView) -> Iterator[Verdict]:
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
    for one in folded(slow):
        yield _slow(view, one)
    if not slow:
        rates = [one.rate.median for one in rows if one.rate is not None]
        yield Passed(f"{len(rows)} GPUs, {min(rates):,.0f} to {max(rates):,.0f} a second")


def _slow(view: SnapshotView, one: RowResult) -> Finding:
    rate = "" if one.rate is None else f"{one.rate.median:,.0f} {one.rate.unit}, "
    suspect = f" First suspect: {one.suspect}." if one.suspect else ""
    return Finding(
        "fail" if one.verdict == "fail" else "warn",
        f"{one.run.row.name} trains {rate}{one.verdict_words}.{suspect}"
        if one.run.row.train
        else f"{one.run.row.name} runs {rate}{one.verdict_words}.{suspect}",
        subjects(view, one),
        evidence(view, one),
        slow_remedy(view, one),
        f"{one.run.row.name} is {one.verdict_words.partition(' (')[0]}",
    )


@check(
    "BEN-006",
    title="Images come as fast as they are trained",
    problem="images come more slowly than the GPU takes them",
    about=(
        "A row that reads images from --data, beside the same row with data that is on the device already: "
        "a warning where reading is more than 5 % slower. A faster GPU would train no faster."
    ),
    sources=("tensorflow.org/guide/data_performance; NVIDIA DALI's documentation",),
    follows=NOTHING_RUNS,
)
def images_come_in_time(view: SnapshotView) -> Iterator[Verdict]:
    rows = [one for one in timed(view) if one.run.row.data != "synthetic"]
    if not rows:
        raise Skip("no images were read (envcheck bench resnet50 --data DIR)")
    starved = [one for one in rows if one.suspect_kind == "input"]
    for one in folded(starved):
        yield Finding(
            "warn",
            f"{one.run.row.name} waits for its input: {one.suspect}.",
            subjects(view, one),
            evidence(view, one),
            input_remedy(view, one),
        )
    if not starved:
        yield Passed(", ".join(one.run.row.data for one in rows))


@check(
    "BEN-007",
    title="GPUs train together as they do alone",
    problem="GPUs train far more slowly together than alone",
    about=(
        "One job on all GPUs (MirroredStrategy, torch.distributed, Horovod), beside the sum of what they do "
        "alone in the same row. A warning below 70 % with ResNet-50, whose gradients are small beside its "
        "work: published machines reach 90 % and more, also over PCIe. Of other models it is told, and not "
        "judged. A GPU that is slow alone is named: it holds all of them back."
    ),
    sources=("throughput_reference.csv: the same machine with 1, 2, 4, 8 and 16 GPUs",),
    follows=(*NOTHING_RUNS, *HELD_BACK, "BEN-002", "ACC-012", "ACC-013", "ACC-014", "MEM-005"),
)
def gpus_scale(view: SnapshotView) -> Iterator[Verdict]:
    found = bench(view)
    if not found.scaling:
        raise Skip("no row ran on several GPUs as one job, and on one alone")
    rows = {one.run.row.name: one for one in found.rows}
    poor = []
    for job in found.scaling:
        one = rows[job.name]
        judged = one.run.row.model == _SCALED and one.run.row.batch >= _SCALED_BATCH
        if not judged or job.efficiency >= _POOR or one.unsteady:
            continue
        poor.append(job)
        slowest = f" {job.slowest_words}." if job.slowest_words else ""
        yield Finding(
            "warn",
            f"{job.name}: {job.rate:,.0f} {job.unit}, {job.efficiency:.0%} of what its GPUs do alone"
            f".{slowest}",
            subjects(view, one),
            evidence(view, one),
            Remedy(
                "See what joins the GPUs, what NCCL makes of it, and whether one of them is slow.",
                ["nvidia-smi topo -m", f"envcheck bench {target(view)}links allreduce"],
            ),
            f"{job.gpus} GPUs train at {job.efficiency:.0%} of what they do alone",
        )
    if not poor:
        best = max(found.scaling, key=lambda job: job.efficiency)
        yield Passed(f"{best.name}: {best.efficiency:.0%} of what its GPUs do alone")


@check(
    "BEN-008",
    title="Rates are steady",
    problem="its rate is unsteady",
    about=(
        "Repetitions of a row on GPUs that differ by more than 10 % of their median: a warning, since "
        "nothing can be held against such a row. Throttling that comes and goes, another process, and input "
        "that comes in bursts do this. On a CPU it is not judged."
    ),
    sources=(
        "envcheck bench: five repetitions and more, in turn with the rows they are compared to",
    ),
    follows=(*NOTHING_RUNS, *HELD_BACK, "BEN-006"),
)
def rates_are_steady(view: SnapshotView) -> Iterator[Verdict]:
    rows = [one for one in timed(view) if one.run.row.gpus]
    if not rows:
        raise Skip("no row ran on a GPU")
    unsteady = [one for one in rows if one.unsteady]
    there = gpus(view)
    for one in folded(unsteady):
        assert one.rate is not None
        suspect = f" First suspect: {one.suspect}." if one.suspect else ""
        yield Finding(
            "warn",
            f"{one.run.row.name} goes from {one.rate.least:,.0f} to {one.rate.most:,.0f} "
            f"{one.rate.unit}.{suspect}",
            subjects(view, one),
            evidence(view, one),
            slow_remedy(view, one)
            if one.suspect_kind
            else Remedy("Run it anew, with more repetitions.", [f"{again(view, one)} --rounds 20"]),
        )
    if not unsteady and there:
        widest = max((one.rate.spread for one in rows if one.rate is not None), default=0.0)
        yield Passed(f"repetitions differ by {widest:.1%} at most")
