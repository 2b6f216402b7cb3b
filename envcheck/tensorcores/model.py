"""The model of a Tensor Core's dot product: exact output bits, from integers alone.

D = round(C + sum of a*b), a block of products at a time. Within a block the products are exact and not
normalised; they and the accumulator are aligned to the largest exponent among them, cut off (toward zero)
below F fraction bits, summed exactly, and the sum is rounded once to the accumulator's type. The result is
the next block's accumulator. F, the block and the rounding are the generation's (``tensor_units.csv``).

Sources: Fasi, Higham, Mikaitis, Pranesh 2021 (PeerJ CS 7:e330); arXiv 2511.10909; arXiv 2512.07004.

What is special: subnormal inputs and outputs are kept. A NaN, an infinity times zero, or infinities of
both signs give the one NaN 7FFFFFFF (7FFF in FP16); other infinities stay; a sum of 2 to the 128 and more
(in FP16: what rounds to 65536) is infinite, truncating units too. A sum of zero is +0, whatever its terms'
signs. A zero product has no part in the alignment. Not known from hardware, and set by us: the sign
of a sum that underflows to zero (kept), and alignment among products below 2 to the -126, FP32's smallest
normal number (the largest exponent is never taken as lower than that).
"""

from __future__ import annotations

from collections.abc import Sequence

from .formats import Number, Rounding, decode, encode, encode_special, product, round_input
from .formats import special_sum as _special_sum
from .units import Unit, unit_of

_LOWEST = -126


def multiply_add(
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    input_type: str,
    output_type: str,
    compute_capability: str,
    input_rounding: Rounding = "RZ",
) -> int:
    """The bits of D = C + the dot product of ``a`` and ``b``, as that chip's Tensor Core computes it.

    ``a``, ``b``: as many words each, of ``input_type`` "fp16", "bf16", "e4m3", "e5m2", or "tf32" for FP32
    words that the unit cuts to TF32 by ``input_rounding``: "RZ" as mma.sync does; "RNA" or "RNE" where
    software rounded them before. Their places matter: the first block begins with the first.
    ``c``: a word of ``output_type``, "fp32" or "fp16", which the result is too.
    ``compute_capability``: "9.0". Raises LookupError where its arithmetic for these types is not known,
    and ValueError where ``a`` and ``b`` are not equally long.
    """
    unit = unit_of(compute_capability, input_type, output_type)
    if unit is None:
        raise LookupError(
            f"no arithmetic is known of {input_type} to {output_type} "
            f"on compute capability {compute_capability}"
        )
    return run(unit, a, b, c, input_rounding)


def run(
    unit: Unit, a: Sequence[int], b: Sequence[int], c: int = 0, input_rounding: Rounding = "RZ"
) -> int:
    """As `multiply_add`, by a unit of any parameters."""
    products = [
        product(
            operand(x, unit.input_type, input_rounding), operand(y, unit.input_type, input_rounding)
        )
        for x, y in zip(a, b, strict=True)
    ]
    for start in range(0, len(products), unit.block):
        c = sum_block(unit, products[start : start + unit.block], c)
    return c


def operand(word: int, input_type: str, input_rounding: Rounding) -> Number:
    """An input word as a number; FP32 words where ``input_type`` is "tf32"."""
    if input_type == "tf32":
        return decode(round_input(word, "tf32", input_rounding), "fp32")
    return decode(word, input_type)


def sum_block(unit: Unit, products: Sequence[Number], c: int) -> int:
    """One block: the accumulator's new word, from at most ``unit.block`` products and its old word."""
    terms = [*products, decode(c, unit.accumulator_type)]
    special = _special_sum(terms)
    if special is not None:
        return encode_special(special, unit.accumulator_type)
    largest = max([_LOWEST, *(term.exponent for term in terms if term.significand)])
    last = largest - unit.fraction_bits
    total = sum(_truncated(term, last) for term in terms)
    return encode(
        total, last, unit.accumulator_type, unit.output_rounding, unit.output_fraction_bits
    )


def _truncated(term: Number, last: int) -> int:
    """A term in steps of 2 to the ``last``, the rest cut off toward zero."""
    shift = term.scale - last
    if shift >= 0:
        return term.significand << shift
    magnitude = abs(term.significand) >> -shift
    return magnitude if term.significand > 0 else -magnitude
