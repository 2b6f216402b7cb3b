"""Whether losses from one seed agree: FP32's beside those of TF32 and AMP, and of two controls. Pure.

Losses of single steps are noise, so that curves are means over some steps behind. The distance of two curves
is the largest difference between them, as a share of the reference; where that has nearly reached nothing, of
a tenth of what it began with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from ..facts.bench import BenchRow, RowRun

# AMP with BF16 on a CPU, six seeds of 60 steps in PyTorch: 0.05 to 0.2 %, and 2.7 % once, where a last bit
# decided. All in BF16: 5.5 to 11 %; a scaler that skips every step: 65 %. TF32 and FP16 have three bits more.
AGREE = 0.04
LEAST_STEPS = 20  # of a row that is judged
_WINDOW = 10  # the share of the steps that a mean is over: one in so many
_FLOOR = 0.1  # of where the reference began
_LAG = 20  # skipped steps that a curve may lag behind: one in so many
_MOST = 1e30  # a loss above is no number either

# "not-judged": it has no curve, or there is none to hold it against.
Agreement = Literal["agrees", "parts", "not-judged"]


class ParityCurve(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # of the row
    label: str  # "AMP", "TF32", "a stuck loss scale", "all in BF16"
    control: bool = False  # which must part
    agreement: Agreement = "not-judged"
    distance: float | None = None  # None: it came to no number, or is not judged
    at: int = 0  # the step at which it is largest, or at which the loss was no number any more
    words: str = ""  # "at most 0.08 % from FP32, at step 31"
    smoothed: list[float] = []


class ParityResult(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one framework and one GPU that began with the same seed."""

    reference: str  # the row in FP32
    steps: int
    smoothed: list[float]  # the reference's
    curves: list[ParityCurve]

    @property
    def parted(self) -> list[ParityCurve]:
        """Those that should have agreed."""
        return [one for one in self.curves if not one.control and one.agreement == "parts"]

    @property
    def blind(self) -> list[ParityCurve]:
        """Controls that agree: what they lack, these steps do not show."""
        return [one for one in self.curves if one.control and one.agreement == "agrees"]


def parities(runs: Sequence[RowRun]) -> list[ParityResult]:
    """One for each row in FP32 whose losses were kept from the seed on, in their order."""
    kept = [run for run in runs if run.row.steps > 0 and run.row.train]
    found = []
    for reference in kept:
        if reference.row.precision == "fp32" and not is_control(reference.row):
            others = [run for run in kept if run is not reference and _alike(run, reference)]
            if others:
                found.append(_held(reference, others))
    return found


def is_control(row: BenchRow) -> bool:
    return row.precision == "half" or row.scaler == "stuck"


def label(row: BenchRow) -> str:
    kind = {"bfloat16": "BF16", "float16": "FP16"}.get(row.half, "16 bits")
    if row.precision == "half":
        return f"all in {kind}"
    if row.scaler == "stuck":
        return "a stuck loss scale"
    return row.precision.upper() + (" compiled" if row.compiled and row.style != "jax" else "")


def smoothed(losses: Sequence[float | None]) -> list[float]:
    """Means over the steps behind; it ends where a loss is no number."""
    window = _window(len(losses))
    numbers = _numbers(losses)
    return [
        math.fsum(numbers[max(0, end - window) : end]) / min(window, end)
        for end in range(1, len(numbers) + 1)
    ]


def distance(reference: Sequence[float], other: Sequence[float], lag: int = 0) -> tuple[float, int]:
    """(the largest relative difference of two smoothed curves, the step at which it is), steps from 1 on.

    Looked for where means are over whole windows. lag: steps that the other may be behind, since its scaler
    skipped as many.
    """
    if not reference or not other:
        return 0.0, 0
    floor = max(_FLOOR * abs(reference[0]), 1e-9)
    first = _window(len(reference)) - 1 + lag
    far, at = 0.0, first + 1
    for step in range(first, min(len(reference), len(other))):
        near = min(
            abs(other[step] - beside) / max(abs(beside), floor)
            for beside in reference[step - lag : step + 1]
        )
        if near > far:
            far, at = near, step + 1
    return far, at


def _window(steps: int) -> int:
    return max(1, steps // _WINDOW)


def _numbers(losses: Sequence[float | None]) -> list[float]:
    found = []
    for loss in losses:
        if loss is None or not math.isfinite(loss) or abs(loss) > _MOST:
            break
        found.append(loss)
    return found


def _alike(run: RowRun, reference: RowRun) -> bool:
    names = (
        "what",
        "model",
        "style",
        "batch",
        "image",
        "length",
        "small",
        "seed",
        "gpus",
        "together",
    )
    return all(getattr(run.row, name) == getattr(reference.row, name) for name in names)


def _skipped(run: RowRun) -> int:
    told = run.evidence.get("skipped_steps")
    return max(0, told) if isinstance(told, int) else 0


def _held(reference: RowRun, others: Sequence[RowRun]) -> ParityResult:
    curve = smoothed(reference.losses)
    return ParityResult(
        reference=reference.row.name,
        steps=len(curve),
        smoothed=curve,
        curves=[_curve(run, reference, curve) for run in others],
    )


def _curve(run: RowRun, reference: RowRun, beside: list[float]) -> ParityCurve:
    """One row, beside the reference's smoothed curve."""
    own = smoothed(run.losses)
    told = ParityCurve(
        name=run.row.name, label=label(run.row), control=is_control(run.row), smoothed=own
    )
    if not reference.losses or len(beside) < max(LEAST_STEPS, len(reference.losses)):
        why = f"{reference.row.name} has no curve to hold it against"
        return msgspec.structs.replace(told, words=why)
    if len(own) < len(run.losses):  # whatever came before it
        return msgspec.structs.replace(
            told,
            agreement="parts",
            at=len(own) + 1,
            words=f"its loss is no number from step {len(own) + 1} on",
        )
    if len(own) < LEAST_STEPS or run.outcome != "ok":
        return msgspec.structs.replace(told, words=f"it has {len(own)} steps")
    far, at = distance(beside, own, min(_skipped(run), len(own) // _LAG))
    return msgspec.structs.replace(
        told,
        agreement="agrees" if far <= AGREE else "parts",
        distance=far,
        at=at,
        words=f"at most {far:.2%} from FP32, at step {at}".replace("%", " %"),
    )
