"""What a bench's rows mean: rates, speed-ups, shares of what should be. Checks judge it, reports show it."""

from __future__ import annotations

import statistics
from typing import Literal

import msgspec

from ..facts.bench import Bench, RowRun
from ..facts.snapshot import Snapshot

# Whether the row's mode is proven: by evidence of its own, which the row without it lacks.
Proof = Literal["engaged", "not-engaged", "not-known", "nothing-to-engage"]


class RowRate(msgspec.Struct, frozen=True, kw_only=True):
    """Samples per second over all of a row's GPUs, skipped steps not counted."""

    median: float
    least: float
    most: float
    repetitions: int
    unit: str  # "images/s", "sequences/s", "samples/s"


class ReferenceRate(msgspec.Struct, frozen=True, kw_only=True):
    """A figure to hold a row against."""

    rate: float
    kind: Literal["published", "baseline", "other-gpu"]
    about: str  # "A100 40GB, AMP, XLA, batch 256, tensorflow:20.06-tf1-py3"
    source: str
    fits: bool  # GPU, precision, compiler, batch and data agree; else it is context, and judges nothing
    differs: str = ""  # in what it does not fit: "batch 256"


class RowResult(msgspec.Struct, frozen=True, kw_only=True):
    run: RowRun
    rate: RowRate | None = None  # None where nothing was measured
    proof: Proof = "not-known"
    proof_words: str = ""  # "158 of 158 convolutions in FP16"
    speed_up: float | None = None  # only where proven engaged
    against: str = ""  # the name of the row that the speed-up is over
    utilisation: float | None = None  # of the chip's peak in that mode: model FLOPs utilisation
    references: list[ReferenceRate] = []  # those that fit first
    verdict: Literal["", "pass", "warn", "fail"] = ""  # "" where nothing fits to judge it by
    verdict_words: str = ""  # "12 % below 1,309 images/s (published: …)"
    suspect: str = ""  # what the samples show first: "thermal slowdown in 38 % of the samples"


class BenchResult(msgspec.Struct, frozen=True, kw_only=True):
    bench: Bench
    rows: list[RowResult] = []


def results(snapshot: Snapshot) -> BenchResult | None:
    """None where the Snapshot has no bench."""
    probe = None if snapshot.target is None else snapshot.target.bench
    if probe is None or probe.facts is None:
        return None
    rows = [RowResult(run=run, rate=rate(run)) for run in probe.facts.rows]
    return BenchResult(bench=probe.facts, rows=rows)


def rate(run: RowRun) -> RowRate | None:
    """The row's rate by its repetitions; None without any."""
    gpus = max(1, len(run.row.gpus))
    rates = [
        (one.steps - one.skipped) * run.row.batch * gpus / one.seconds
        for one in run.repetitions
        if one.seconds > 0
    ]
    if not rates:
        return None
    return RowRate(
        median=statistics.median(rates),
        least=min(rates),
        most=max(rates),
        repetitions=len(rates),
        unit="samples/s",
    )
