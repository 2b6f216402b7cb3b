"""The results of a bench: the contract between judgement and reports. Checks judge it, reports show it."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..facts.base import Address
from ..facts.bench import Bench, RowRun

# Whether the row's mode is proven: by evidence of its own, which the row without it lacks.
Proof = Literal["engaged", "not-engaged", "not-known", "nothing-to-engage"]
# What the samples and the evidence show first where a row is slow.
SuspectKind = Literal[
    "",
    "neighbour",  # another process on the GPU
    "power-brake",
    "heat",
    "slowdown",  # by the hardware, whatever for
    "clocks-set",  # applications' or locked clocks, sync boost
    "clocks-low",  # and nothing says why
    "pcie",
    "power-cap",
]


class RowRate(msgspec.Struct, frozen=True, kw_only=True):
    """Samples per second over all of a row's GPUs, skipped steps not counted."""

    median: float
    least: float
    most: float
    repetitions: int
    unit: str  # "images/s", "sequences/s", "samples/s"

    @property
    def spread(self) -> float:
        """From the least to the most, as a share of the median."""
        return (self.most - self.least) / self.median if self.median > 0 else 0.0


class ReferenceRate(msgspec.Struct, frozen=True, kw_only=True):
    """A figure to hold a row against."""

    rate: float
    kind: Literal["published", "baseline", "other-gpu"]
    about: str  # "A100 40GB SXM4, AMP, XLA, batch 256, TensorFlow 1, container 20.06"
    source: str
    least: float = 0.0  # of several that were measured; 0: there is one
    most: float = 0.0


class RowResult(msgspec.Struct, frozen=True, kw_only=True):
    run: RowRun
    gpu_names: list[str] = []  # of its GPUs, as the driver calls them
    cpu: str = ""  # the CPU's name, where it ran on that
    rate: RowRate | None = None  # None where nothing was measured
    epoch_seconds: float | None = None  # of mnist: 60,000 images
    proof: Proof = "not-known"
    proof_words: str = ""  # "158 of 158 convolutions in FP16"
    speed_up: float | None = None  # only where proven engaged, and where repetitions do not overlap
    against: str = ""  # the name of the row that it is compared with
    utilisation: float | None = None  # of the chip's peak in that mode: model FLOPs utilisation
    utilisation_words: str = ""  # "of 312 TFLOP/s in FP16, at the boost clock of 1,410 MHz"
    references: list[ReferenceRate] = []
    share: float | None = None  # of the reference that judges it
    unsteady: bool = False  # its repetitions differ too much to be judged
    verdict: Literal["", "pass", "warn", "fail"] = ""  # "" where nothing fits to judge it by
    verdict_by: Literal["", "published", "baseline", "other-gpu"] = ""  # the figure that decided
    verdict_words: str = ""  # "12 % below 1,309 images/s (published: …)"
    suspect: str = ""  # what the samples show first: "thermal slowdown in 38 % of the samples"
    suspect_kind: SuspectKind = ""


class ScalingResult(msgspec.Struct, frozen=True, kw_only=True):
    """A job on several GPUs, beside what they do alone."""

    name: str  # of the row
    together: str  # "mirrored", "ddp"
    gpus: int
    rate: float
    alone: float  # the sum of what its GPUs reach alone; of those that are known, times their part
    efficiency: float  # rate by alone
    unit: str
    slowest: Address | None = None  # alone; None where they are equal, or that is not known
    slowest_words: str = ""  # "GPU 3 runs at 91 % of the others' median"


class BenchResult(msgspec.Struct, frozen=True, kw_only=True):
    bench: Bench
    on_cpu: bool = False  # all rows: small sizes, which say nothing about a GPU
    rows: list[RowResult] = []
    scaling: list[ScalingResult] = []
    baseline: str = ""  # the file that rows are held against, too
