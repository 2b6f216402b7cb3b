"""The models' numbers, from ``bench_models.csv``: parameters, operations of a sample, unit, memory."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ..data import table
from ..facts.bench import BenchRow

TRAINING = 3  # times the operations of going forward: backward, each product has two
# MiB that a sample of a small row takes on a CPU, about: in 32 bits, by the model.
_SMALL = {"resnet50": 2.0, "mnist": 0.3, "bert-base": 0.5, "unet-2d": 1.0, "mlp": 0.02}
_OVERHEAD_MIB = (
    1200  # of a framework's process on a GPU: its context, workspaces of cuDNN and cuBLAS
)


class ModelNumbers(NamedTuple):
    """One model at one size, as all styles write it. flops: of going forward with one sample.

    mib_fp32, mib_half: what a sample takes in training, about. optimizer_floats: per parameter.
    """

    model: str
    image: int
    length: int
    parameters: int
    flops: float
    unit: str
    mib_fp32: float
    mib_half: float
    optimizer_floats: int
    source: str


@cache
def all_numbers() -> tuple[ModelNumbers, ...]:
    return tuple(
        ModelNumbers(
            row["model"],
            int(row["image"] or 0),
            int(row["length"] or 0),
            int(row["parameters"]),
            float(row["forward_flops"]),
            row["unit"],
            float(row["mib_fp32"]),
            float(row["mib_half"]),
            int(row["optimizer_floats"]),
            row["source"],
        )
        for row in table("bench_models")
    )


def numbers(row: BenchRow) -> ModelNumbers | None:
    """Those of a row's model at the row's size; None where the table has not both."""
    if row.small:
        return None
    for known in all_numbers():
        of_size = known.length == row.length and known.image in (row.image, 0)
        if known.model == row.model and of_size:
            return known
    return None


def unit(model: str) -> str:
    """ "images/s" """
    return next((known.unit for known in all_numbers() if known.model == model), "samples/s")


def flops(row: BenchRow) -> float | None:
    """Operations of one sample in this row: forward, and backward, which takes twice as many."""
    known = numbers(row)
    return None if known is None else known.flops * TRAINING


def memory_mib(row: BenchRow) -> int:
    """What the row takes of each GPU's memory (of the host's on a CPU), about; 0 where that is not known."""
    if row.small:
        return round(_SMALL[row.model] * row.batch) if row.model in _SMALL else 0
    known = numbers(row)
    if known is None:
        return 0
    sample = known.mib_half if row.precision == "amp" else known.mib_fp32
    floats = 2 + known.optimizer_floats  # weights, gradients, the optimizer's
    weights = known.parameters * floats * 4 / 2**20
    return round(_OVERHEAD_MIB + weights + sample * row.batch)
