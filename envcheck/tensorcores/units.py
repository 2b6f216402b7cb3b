"""The arithmetic of each generation's Tensor Core, type by type: from ``tensor_units.csv``.

A compute capability or a type that the table does not have is one whose arithmetic is not known.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, cast

from ..data import table
from .formats import Rounding


class Unit(NamedTuple):
    """What one kind of multiply-accumulate unit keeps of a sum, and how it rounds the result."""

    input_type: str  # "fp16", "bf16", "tf32", "e4m3", "e5m2"
    accumulator_type: str  # of C and D: "fp32", "fp16"
    fraction_bits: int  # F: below the largest exponent of a block's terms; the rest is cut off
    block: int  # w: products that are summed at once, with the accumulator
    output_rounding: Rounding  # of the block's sum to the accumulator's type
    output_fraction_bits: int  # of the result: 13 of FP32's 23 where Ada and Hopper sum FP8


@cache
def known_units() -> dict[Unit, frozenset[str]]:
    """Every unit that the table has, with the compute capabilities ("9.0") whose chips compute so."""
    found: dict[Unit, frozenset[str]] = {}
    for row in table("tensor_units"):
        unit = Unit(
            row["input_type"],
            row["accumulator_type"],
            int(row["fraction_bits"]),
            int(row["block"]),
            cast(Rounding, row["output_rounding"]),
            int(row["output_fraction_bits"]),
        )
        found[unit] = found.get(unit, frozenset()) | {row["compute_capability"]}
    return found


def unit_of(compute_capability: str, input_type: str, accumulator_type: str) -> Unit | None:
    """The unit of a compute capability ("9.0") for two types ("tf32", "fp32"); None where not known."""
    for unit, capabilities in known_units().items():
        if (unit.input_type, unit.accumulator_type) == (input_type, accumulator_type) and (
            compute_capability in capabilities
        ):
            return unit
    return None
