"""Number formats of matrix units: bit patterns to exact integers and back, with no floating-point operation.

FP32, FP16, BF16 and E5M2 follow IEEE 754's pattern; E4M3 (OCP 8-bit floating point, 2023) has no infinity
and one NaN. TF32 is no format of a word: FP32 words are rounded on their way into the unit (`round_input`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

Rounding = Literal["RNE", "RNA", "RZ", "RD"]  # nearest, ties to even or away; toward zero; down


class Format(NamedTuple):
    """A floating-point format of ``1 + exponent_bits + fraction_bits`` bits."""

    exponent_bits: int
    fraction_bits: int
    infinities: bool = True

    @property
    def bias(self) -> int:
        return (1 << self.exponent_bits - 1) - 1

    @property
    def lowest(self) -> int:
        """The exponent of the smallest normal number, and of every subnormal."""
        return 1 - self.bias

    @property
    def sign(self) -> int:
        return 1 << self.exponent_bits + self.fraction_bits

    @property
    def infinity(self) -> int:
        """The word of plus infinity; in E4M3, which has none, of its NaN."""
        if not self.infinities:
            return self.sign - 1
        return (1 << self.exponent_bits) - 1 << self.fraction_bits


FORMATS = {
    "fp32": Format(8, 23),
    "fp16": Format(5, 10),
    "bf16": Format(8, 7),
    "e5m2": Format(5, 2),
    "e4m3": Format(4, 3, infinities=False),
}
WIDTHS = {"fp32": 32, "fp16": 16, "bf16": 16, "e5m2": 8, "e4m3": 8, "int8": 8, "int32": 32}  # bits
_INPUT_FRACTIONS = {"tf32": 10, "bf16": 7}  # what is left of FP32's 23


class Number(NamedTuple):
    """A decoded word: ``significand`` (signed, the leading one written out) times 2 to the ``scale``.

    ``exponent`` is what an adder aligns by: the leading bit's, where that is in its place; a product of
    two significands in [1, 2) is not normalised first.
    """

    significand: int
    scale: int = 0
    exponent: int = 0
    kind: Literal["finite", "infinite", "nan"] = "finite"  # infinite: the significand is the sign


NAN = Number(0, kind="nan")


@lru_cache(maxsize=8192)  # a vector's words come again for every unit and order of its terms
def decode(word: int, element_type: str) -> Number:
    """The number that a word of ``element_type`` (a key of FORMATS) stands for."""
    form = FORMATS[element_type]
    sign = -1 if word & form.sign else 1
    rest = word & form.sign - 1
    if rest == form.infinity and form.infinities:
        return Number(sign, kind="infinite")
    if rest >= form.infinity:
        return NAN
    field = rest >> form.fraction_bits
    fraction = rest & (1 << form.fraction_bits) - 1
    exponent = form.lowest + max(field, 1) - 1
    significand = fraction | (1 << form.fraction_bits if field else 0)
    return Number(sign * significand, exponent - form.fraction_bits, exponent)


def integer(word: int, width: int) -> int:
    """A two's complement word of ``width`` bits as the integer that it stands for."""
    return word - (1 << width) if word >> width - 1 else word


def encode(
    significand: int,
    scale: int,
    element_type: str,
    rounding: Rounding,
    fraction_bits: int | None = None,
) -> int:
    """The word for significand times 2 to the scale, rounded once; "fp32", "fp16", "bf16" or "e5m2".

    ``fraction_bits``: keep no more than these. Zero is +0; what is rounded to zero keeps its sign. What is
    too large is infinite under every rounding: truncation to a finite format never makes a number larger
    than it is, and a magnitude of 2 to the 128 has no FP32 word (arXiv 2511.10909, hardware tests).
    """
    form = FORMATS[element_type]
    if not form.infinities:
        raise ValueError(f"{element_type} is an input format only")
    if significand == 0:
        return 0
    kept = form.fraction_bits if fraction_bits is None else fraction_bits
    magnitude = abs(significand)
    exponent = max(magnitude.bit_length() - 1 + scale, form.lowest)
    steps = _steps(magnitude, exponent - kept - scale, rounding, significand < 0)
    # A carry out of the fraction runs into the exponent's field, as it must.
    word = (exponent - form.lowest << form.fraction_bits) + (steps << form.fraction_bits - kept)
    return min(word, form.infinity) | (form.sign if significand < 0 else 0)


def _steps(magnitude: int, shift: int, rounding: Rounding, negative: bool) -> int:
    """``magnitude`` in steps of 2 to the ``shift``, rounded to a whole number of them."""
    if shift <= 0:
        return magnitude << -shift
    steps, rest = magnitude >> shift, magnitude & (1 << shift) - 1
    half = 1 << shift - 1
    if rounding == "RNE":
        return steps + (rest > half or (rest == half and steps & 1))
    if rounding == "RNA":
        return steps + (rest >= half)
    return steps + (rounding == "RD" and negative and rest > 0)


def encode_special(number: Number, element_type: str) -> int:
    """The word of an infinity or a NaN. NVIDIA's units write one NaN, 7FFFFFFF or 7FFF (arXiv 2511.10909)."""
    form = FORMATS[element_type]
    if number.kind == "nan":
        return form.sign - 1
    return form.infinity | (form.sign if number.significand < 0 else 0)


def convert(word: int, from_type: str, to_type: str) -> int:
    """A word of one type as a word of another, rounded to nearest, ties to even."""
    if from_type == to_type:
        return word
    number = decode(word, from_type)
    if number.kind != "finite":
        return encode_special(number, to_type)
    return encode(number.significand, number.scale, to_type, "RNE")


def round_input(word: int, to: str, rounding: Rounding) -> int:
    """An FP32 word as a unit takes it in: its fraction cut to that of "tf32" or "bf16".

    Infinities and NaNs are cut without rounding, so that a NaN may become an infinity, as it does in
    hardware (arXiv 2511.10909).
    """
    dropped = 23 - _INPUT_FRACTIONS[to]
    if word & 0x7F800000 != 0x7F800000:
        if rounding == "RNA":
            word += 1 << dropped - 1
        elif rounding == "RNE":
            word += (1 << dropped - 1) - 1 + (word >> dropped & 1)
        elif rounding != "RZ":
            raise ValueError(f"no unit rounds its inputs by {rounding}")
    return word >> dropped << dropped


def product(a: Number, b: Number) -> Number:
    """The exact product, not normalised: its exponent is the sum of the factors'."""
    if "nan" in (a.kind, b.kind):
        return NAN
    if "infinite" in (a.kind, b.kind):
        sign = a.significand * b.significand
        return Number(1 if sign > 0 else -1, kind="infinite") if sign else NAN
    return Number(a.significand * b.significand, a.scale + b.scale, a.exponent + b.exponent)


def special_sum(terms: Iterable[Number]) -> Number | None:
    """What a sum is where a term is infinite or no number; None where all terms are finite."""
    specials = [term for term in terms if term.kind != "finite"]
    if not specials:
        return None
    signs = {term.significand for term in specials}
    return specials[0] if len(signs) == 1 else NAN
