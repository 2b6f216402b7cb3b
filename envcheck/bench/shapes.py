"""Shapes around multiples of 8, 16 and 64: what one loses off the multiple, and where the rate steps up.

Rates are by the work that was asked for: what a library pads counts for nothing. A difference within the
spread of the repetitions is none.
"""

from __future__ import annotations

import statistics
from typing import Literal

import msgspec

from ..facts.base import Address, Unavailable
from ..facts.bench import BenchRow, RowRun, ShapeRate, Style
from ..tensorcores.kernel_names import Class, classify

MULTIPLES = (1, 2, 4, 8, 16, 32, 64)
# A rate that is higher by this share is a step; what is lower by it is a loss.
STEP = 0.10
ROUNDS = 5  # in each of which every shape is measured once


class ShapeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One shape's rate, beside that of the round number it stands by."""

    shape: ShapeRate
    multiple: int  # the largest of MULTIPLES that divides its edge
    tflops: float | None = (
        None  # 10^12 operations a second, the median; None where nothing was measured
    )
    least: float = 0.0
    most: float = 0.0
    share: float | None = None  # of the round number's rate
    loses: bool = False  # by STEP or more, and beyond the spread of both
    kernel: str = ""  # the one that multiplies, or the first; "" where no name was seen
    unit: Class = "unknown"
    words: str = ""  # "1023 runs at 41 % of 1024; its kernel is …"


class ShapeStep(msgspec.Struct, frozen=True, kw_only=True):
    """The multiple by which the rate around a number steps up."""

    operation: Literal["product", "convolution"]
    around: int
    multiple: int
    gain: float  # 2.4: this many times the best of what is no such multiple
    words: str  # "products around 1024 run 2.4 times as fast from multiples of 8 on"


class ShapesResult(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # the row's
    dtype: str
    shapes: list[ShapeResult] = []
    steps: list[ShapeStep] = []


def rows(style: Style, gpu: Address | None, small: bool) -> list[BenchRow]:
    """The rows of `envcheck bench shapes` in one style: a process for each type of numbers."""
    types: list[BenchRow] = []
    if gpu is None:
        types = [_row(style, None, small, "fp32")]
    else:
        types = [_row(style, gpu, small, "tf32"), _row(style, gpu, small, "half")]
    return types


def _row(
    style: Style, gpu: Address | None, small: bool, precision: Literal["fp32", "tf32", "half"]
) -> BenchRow:
    return BenchRow(
        name=f"shapes {precision} {style}",
        what="shapes",
        model="shapes",
        style=style,
        precision=precision,
        half="float16" if precision == "half" else "",
        train=False,
        steps=ROUNDS,
        compiled=style == "jax",
        small=small,
        gpus=[] if gpu is None else [gpu],
    )


def shapes_of(run: RowRun) -> ShapesResult | None:
    """What a row's shapes say; None for a row that ran none."""
    if not run.shapes:
        return None
    found = [_shape(one, _beside(one, run.shapes)) for one in run.shapes]
    steps = []
    for operation, around in dict.fromkeys((one.operation, one.around) for one in run.shapes):
        some = [
            one for one in found if (one.shape.operation, one.shape.around) == (operation, around)
        ]
        steps += _steps(operation, around, some)
    return ShapesResult(name=run.row.name, dtype=run.shapes[0].dtype, shapes=found, steps=steps)


def operations(shape: ShapeRate) -> int:
    """Multiplications and additions of one; 0 for sizes that are none."""
    if any(size <= 0 for size in shape.sizes):
        return 0
    if shape.operation == "product" and len(shape.sizes) == 3:
        m, n, k = shape.sizes
        return 2 * m * n * k
    if shape.operation == "convolution" and len(shape.sizes) == 5:
        images, pixels, inputs, outputs, kernel = shape.sizes  # padding "same", stride 1
        return 2 * images * pixels**2 * inputs * outputs * kernel**2
    return 0


def multiple_of(edge: int) -> int:
    return max((one for one in MULTIPLES if edge % one == 0), default=1)


def _beside(shape: ShapeRate, shapes: list[ShapeRate]) -> ShapeRate | None:
    for one in shapes:
        alike = (one.operation, one.around, one.dtype)
        if one.edge == one.around and alike == (shape.operation, shape.around, shape.dtype):
            return one
    return None


def _rates(shape: ShapeRate) -> list[float]:
    return [operations(shape) / one / 1e12 for one in shape.seconds if one > 0]


def _shape(shape: ShapeRate, beside: ShapeRate | None) -> ShapeResult:
    kernel, unit = _kernel(shape)
    rates = [one for one in _rates(shape) if one > 0]
    known = ShapeResult(
        shape=shape, multiple=multiple_of(shape.edge), kernel=kernel, unit=unit, words=shape.reason
    )
    if not rates:
        return known
    median, others = statistics.median(rates), [] if beside is None else _rates(beside)
    share = None
    if others and beside is not shape and statistics.median(others) > 0:
        share = median / statistics.median(others)
    loses = share is not None and share <= 1 - STEP and max(rates) < min(others)
    words = f"{median:.3g} TFLOP/s"
    if share is not None:
        words = f"{shape.edge} runs at {100 * share:.0f} % of {shape.around}"
    if kernel:
        words += f"; its kernel is {kernel}"
    return msgspec.structs.replace(
        known,
        tflops=median,
        least=min(rates),
        most=max(rates),
        share=share,
        loses=loses,
        words=words,
    )


def _kernel(shape: ShapeRate) -> tuple[str, Class]:
    """The kernel that multiplies, by its name; else the first that is no helper."""
    if isinstance(shape.kernels, Unavailable) or not shape.kernels:
        return "", "unknown"
    order: list[Class] = ["tensor", "simt", "unknown", "auxiliary"]
    name = min(shape.kernels, key=lambda one: order.index(classify(one)))
    return name, classify(name)


def _steps(
    operation: Literal["product", "convolution"], around: int, shapes: list[ShapeResult]
) -> list[ShapeStep]:
    """Where the rate rises: every shape of this multiple or a larger one is above all the others."""
    steps: list[ShapeStep] = []
    timed = [one for one in shapes if one.tflops is not None]
    for multiple in MULTIPLES[1:]:
        below = [one for one in timed if one.multiple < multiple]
        here = [one for one in timed if one.multiple >= multiple]
        if not any(one.multiple == multiple for one in here) or not below:
            continue
        low = max(one.tflops or 0.0 for one in below)
        gain = min(one.tflops or 0.0 for one in here) / low
        apart = min(one.least for one in here) > max(one.most for one in below)
        if gain >= 1 + STEP and apart:
            words = (
                f"{operation}s around {around} run {gain:.1f} times as fast"
                f" from multiples of {multiple} on"
            )
            steps.append(
                ShapeStep(
                    operation=operation, around=around, multiple=multiple, gain=gain, words=words
                )
            )
    return steps
