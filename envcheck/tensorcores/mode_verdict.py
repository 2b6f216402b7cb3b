"""The result for one mode, at one level, on one GPU: the verdict, and the lines of evidence under it."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..facts.micro_kernels import Level, Mode, Setting
from ..facts.target import FRAMEWORKS
from ..findings.model import Remedy
from ..findings.subjects import Subject, about

Word = Literal["tensor", "not tensor", "cannot tell"]
Verdict = Literal[
    "proven",  # bits say tensor, and rate or hardware agrees; where bits cannot: rate and hardware
    "indicated",  # one line of evidence alone, or the control did not come out as it must
    "not engaged",  # the bits are those of a chain of fused multiply-adds
    "contradiction",  # the lines disagree
    "cannot tell",  # it ran, and no line says anything
    "could not run",
    "not applicable",  # the chip has no such mode
]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one mode's bits say."""

    says: Word
    text: str  # for one cell of a table: "S1 3F800001: truncated, F=25"
    # "Tensor Core, 25 fraction bits kept", "FP32 FMA chain"; "" where it cannot tell.
    unit: str = ""
    blind: bool = False  # the bits cannot tell by nature: both kinds of unit give the same here
    wrong: str = ""  # a sentence, where an output is what no unit computes
    unknown: bool = False  # the arithmetic is none that is known


class Line(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of evidence: what it says, in a word and in a cell's worth of text."""

    says: Word
    text: str  # "S1 3F800001: truncated, 25 bits kept"; why, where it cannot tell


class ModeVerdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row's cell of the report's table, and all that explains it."""

    level: Level
    framework: str = ""  # L2
    library: str = ""  # L1: "libcublas 12.9.1"
    gpu: Subject | None  # or the MIG instance; None where the level ran on none
    mode: Mode
    setting: Setting = ""
    control: bool = False  # it must come out "not engaged"
    verdict: Verdict
    bits: Line
    rate: Line
    hardware: Line
    tflops: float | None = None  # TOP/s for INT8
    peak_tflops: float | None = None  # of this mode, at the clock that was seen
    share: float | None = None  # tflops / peak_tflops
    ratio: float | None = None  # to the FP32 products between
    reason: str = ""  # of what is neither proven nor not engaged: which lines say what, or why none
    cause: str = ""  # of what is not proven: the likely cause, one sentence
    slow: str = ""  # why it is slower than the chip can, where the facts tell: one sentence
    remedy: Remedy | None = None

    @property
    def subjects(self) -> list[Subject]:
        """What it is about: the GPU, or the framework where it ran on none."""
        return [self.gpu] if self.gpu else about("framework", FRAMEWORKS.get(self.framework))
