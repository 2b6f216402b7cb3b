"""All that may have computed a dot product: every known Tensor Core, every rival, and what each can give."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import product as every
from typing import NamedTuple

from .chains import MOST_ORDERED, add_words, chain_any_order, parts
from .formats import FORMATS, Number, Rounding, convert, decode, product, round_input
from .model import sum_block
from .units import Unit, known_units

# Blocks of consecutive places that no kernel's slices or tiles cut through: the collector places the
# terms of a vector accordingly.
_SLICE = 16
_ROUNDINGS: tuple[Rounding, ...] = ("RZ", "RNA", "RNE")


class Dot(NamedTuple):
    """A dot product whose only non-zero terms are at ``slots``, as words of finite numbers."""

    input_type: str  # of a and b: "fp32", "fp16", "bf16", "e4m3"
    output_type: str  # "fp32", "fp16", "bf16"
    a: tuple[int, ...]
    b: tuple[int, ...]
    slots: tuple[int, ...]
    c: int  # of output_type


class Candidate(NamedTuple):
    """One way to compute a dot product: on Tensor Cores where ``unit`` is there, else by a chain."""

    accumulator_type: str
    unit: Unit | None = None
    capabilities: frozenset[str] = frozenset()  # whose Tensor Cores compute so
    inputs: str = ""  # what FP32 words are rounded to first: "tf32", "bf16"; "": as they are
    input_rounding: Rounding = "RZ"

    def products(self, dot: Dot) -> list[Number]:
        """The exact products, of the inputs as this way takes them in."""
        a, b = dot.a, dot.b
        if self.inputs:
            a, b = (
                tuple(round_input(word, self.inputs, self.input_rounding) for word in words)
                for words in (a, b)
            )
        return [
            product(decode(x, dot.input_type), decode(y, dot.input_type))
            for x, y in zip(a, b, strict=True)
        ]


@cache
def candidates(input_type: str, output_type: str) -> tuple[Candidate, ...]:
    """Who may have multiplied words of ``input_type`` ("fp32" for TF32 too) into ``output_type``.

    FP32 words may go through Tensor Cores as TF32, as BF16, or in pieces, which emulates FP32.
    """
    found = [
        Candidate(unit.accumulator_type, unit, capabilities, *taken_in)
        for unit, capabilities in known_units().items()
        for taken_in in _ways_in(input_type, unit.input_type)
        if unit.accumulator_type in ("fp32", output_type)
    ]
    rivals = [Candidate("fp32")]
    if input_type == "fp32":
        rivals += [
            Candidate("fp32", None, frozenset(), *w) for w in every(("tf32", "bf16"), _ROUNDINGS)
        ]
    elif input_type in ("fp16", "bf16"):
        rivals.append(Candidate(input_type))
    elif input_type == "e4m3":
        rivals.append(Candidate("fp16"))
    return (*found, *rivals)


def _ways_in(words: str, unit_type: str) -> list[tuple[str, Rounding]]:
    """How words of a type can enter a unit: (rounded to what, how)."""
    if words == "fp32" and unit_type in ("tf32", "bf16"):
        pieces: list[tuple[str, Rounding]] = [("", "RZ")] if unit_type == "bf16" else []
        return [(unit_type, rounding) for rounding in _ROUNDINGS] + pieces
    return [("", "RZ")] if words == unit_type else []


@lru_cache(maxsize=4096)
def outputs(candidate: Candidate, dot: Dot) -> frozenset[int]:
    """Every word of the output's type that the candidate may give, whatever the kernel around it."""
    products = candidate.products(dot)
    c = convert(dot.c, dot.output_type, candidate.accumulator_type)
    if candidate.unit is None:
        words = chain_any_order(products, c, candidate.accumulator_type)
    elif candidate.accumulator_type == "fp32" and len(products) <= MOST_ORDERED:
        words = _any_blocks(candidate.unit, products, dot.slots, c)
    else:
        words = frozenset((_in_place(candidate.unit, products, dot.slots, c),))
    return frozenset(convert(word, candidate.accumulator_type, dot.output_type) for word in words)


def in_place(candidate: Candidate, dot: Dot) -> frozenset[int]:
    """Of `outputs`, those of a kernel that takes the terms in their recorded places."""
    if candidate.unit is None:
        return outputs(candidate, dot)
    c = convert(dot.c, dot.output_type, candidate.accumulator_type)
    word = _in_place(candidate.unit, candidate.products(dot), dot.slots, c)
    return frozenset((convert(word, candidate.accumulator_type, dot.output_type),))


def _in_place(unit: Unit, products: Sequence[Number], slots: Sequence[int], c: int) -> int:
    """The word from blocks as the recorded places make them.

    Blocks of zeros give back the accumulator that they got, but for the first one, which may cut C to what
    the unit keeps.
    """
    blocks: dict[int, list[Number]] = {0: []}
    for slot, one in zip(slots, products, strict=True):
        blocks.setdefault(slot // unit.block, []).append(one)
    for _, block in sorted(blocks.items()):
        c = sum_block(unit, block, c)
    return c


def _any_blocks(
    unit: Unit, products: Sequence[Number], slots: Sequence[int], c: int
) -> frozenset[int]:
    """Terms shared out to blocks in every way, and slices of the sum to accumulators of their own.

    A kernel may permute the places, the same in A and B, to load them faster. An FP32 accumulator's
    signature outlasts that; FP16 accumulators are only seen, and so only taken, in place.
    """

    def sums(chosen: frozenset[int], start: int) -> set[int]:
        if not chosen:
            return {start}
        found = set()
        for block in (*parts(chosen), chosen):  # no unit's blocks are too small for so few terms
            terms = [products[i] for i in sorted(block)]
            found |= {sum_block(unit, terms, word) for word in sums(chosen - block, start)}
        slices = frozenset(slots[i] // _SLICE for i in chosen)
        for part in parts(slices):
            mine = frozenset(i for i in chosen if slots[i] // _SLICE in part)
            for first in sums(mine, start):
                for second in sums(chosen - mine, 0):
                    found.add(add_words(first, second, unit.accumulator_type))
        return found

    return frozenset(sums(frozenset(range(len(products))), c))


def is_float(element_type: str) -> bool:
    """Whether the type is one that candidates are known for, and no integer."""
    return element_type in FORMATS
