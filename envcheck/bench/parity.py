"""Whether losses from one seed agree: those of TF32 and AMP with those of FP32. Pure.

Losses of single steps are noise, so that curves are means over the last steps. The distance of two curves
is the largest difference between them, as a share of the reference; near zero, of a tenth of its first value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from ..facts.bench import BenchRow, RowRun

# AMP with BF16 on a CPU, six seeds of 60 steps in PyTorch: 0.05 to 0.2 %, and 2.7 % once, where a last bit
# decided. TF32 and FP16 have three bits more.
AGREE = 0.04
LEAST_STEPS = 20  # of a row that is judged
_WINDOW = 10  # the share of the steps that a mean is over: one in so many
_FLOOR = 0.1  # of the reference's first value
_LAG = 20  # skipped steps that a curve may lag behind: one in so many
_MOST = 1e30  # a loss above is no number either

# "not-judged": it has no curve, or the reference has none.
Agreement = Literal["agrees", "parts", "not-judged"]


class ParityCurve(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # of the row
    label: str  # "AMP", "TF32"
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


def parities(runs: Sequence[RowRun]) -> list[ParityResult]:
    """One for each row in FP32 whose losses were kept from the seed on, in their order."""
    kept = [run for run in runs if run.row.steps > 0 and run.row.train and not is_control(run.row)]
    found = []
    for reference in kept:
        if reference.row.precision == "fp32":
            key = _key(reference.row)
            others = [run for run in kept if run is not reference and _key(run.row) == key]
            if others:
                found.append(_compared(reference, others))
    return found


def is_control(row: BenchRow) -> bool:
    """Rows of envcheck before 0.3 that were meant to part."""
    return row.precision == "half" or row.scaler == "stuck"


def label(row: BenchRow) -> str:
    return row.precision.upper() + (" compiled" if row.compiled and row.style != "jax" else "")


def smoothed(losses: Sequence[float | None]) -> list[float]:
    """Means over the last steps; it ends where a loss is no number."""
    window, numbers = _window(len(losses)), []
    for loss in losses:
        if loss is None or not math.isfinite(loss) or abs(loss) > _MOST:
            break
        numbers.append(loss)
    return [
        math.fsum(numbers[max(0, end - window) : end]) / min(window, end)
        for end in range(1, len(numbers) + 1)
    ]


def distance(reference: Sequence[float], other: Sequence[float], lag: int = 0) -> tuple[float, int]:
    """(the largest relative difference of two smoothed curves, the step at which it is), steps from 1 on.

    Only means over whole windows count. lag: steps that the other may be behind, since its scaler skipped
    as many.
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


def _key(row: BenchRow) -> tuple[object, ...]:
    size = row.batch, row.image, row.length, row.small
    return row.what, row.model, row.style, *size, row.seed, row.gpus, row.together


def _compared(reference: RowRun, others: Sequence[RowRun]) -> ParityResult:
    curve = smoothed(reference.losses)
    whole = len(curve) >= max(LEAST_STEPS, len(reference.losses))
    return ParityResult(
        reference=reference.row.name,
        steps=len(curve),
        smoothed=curve,
        curves=[_curve(run, reference.row.name, curve if whole else None) for run in others],
    )


def _curve(run: RowRun, reference: str, beside: list[float] | None) -> ParityCurve:
    """One row, beside the reference's smoothed curve."""
    own = smoothed(run.losses)
    found = ParityCurve(name=run.row.name, label=label(run.row), smoothed=own)
    if beside is None:
        why = f"{reference} has no curve to compare it with"
        return msgspec.structs.replace(found, words=why)
    if len(own) < len(run.losses):
        at = len(own) + 1
        words = f"its loss is no number from step {at} on"
        return msgspec.structs.replace(found, agreement="parts", at=at, words=words)
    if len(own) < LEAST_STEPS or run.outcome != "ok":
        return msgspec.structs.replace(found, words=f"it has {len(own)} steps")
    skipped = run.evidence.get("skipped_steps")
    lag = max(0, skipped) if isinstance(skipped, int) else 0
    far, at = distance(beside, own, min(lag, len(own) // _LAG))
    return msgspec.structs.replace(
        found,
        agreement="agrees" if far <= AGREE else "parts",
        distance=far,
        at=at,
        words=f"at most {far:.2%} from FP32, at step {at}".replace("%", " %"),
    )
