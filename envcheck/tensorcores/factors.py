"""What FP32 factors were rounded to before they were multiplied: found by single products' bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..facts.micro_kernels import Output, Signature
from .formats import Rounding, convert, decode, encode, product, round_input, special_sum
from .signatures import read

FP32, TF32, BF16, FP16 = FORMS = ("FP32", "TF32", "BF16", "FP16")
_ROUNDINGS: tuple[Rounding, ...] = ("RZ", "RNA", "RNE")
_HEX = frozenset("0123456789ABCDEF")
_MOST_TERMS = 8
_LENGTH = 16  # of a recorded sum: two terms stand side by side


class Sum(NamedTuple):
    """A sum of products as a Snapshot has it: "S1 3F800000 x 3F800000 + 39800000 x 3A400000 = 3F800001"."""

    vector: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    outputs: tuple[int, ...]
    complete: bool  # false: there were more, which were not recorded


def parse(line: str) -> Sum | None:
    """A line as a Sum; None where it is none."""
    vector, _, rest = line.partition(" ")
    products, equals, right = rest.partition(" = ")
    terms = [term.split(" x ") for term in products.split(" + ")]
    outputs = right.split(" or ")
    complete = outputs[-1] != "more"
    words = outputs if complete else outputs[:-1]
    if not equals or not words or len(terms) > _MOST_TERMS:
        return None
    if any(len(term) != 2 for term in terms):
        return None
    if not all(map(_word, [*words, *(word for term in terms for word in term)])):
        return None
    a, b = (tuple(int(term[place], 16) for term in terms) for place in (0, 1))
    return Sum(vector, a, b, tuple(int(word, 16) for word in words), complete)


def _word(text: str) -> bool:
    return len(text) == 8 and _HEX.issuperset(text)


def rounded_to(sums: Iterable[Sum]) -> str:
    """Which of FORMS the factors of these products were rounded to; "" where it cannot be determined.

    That of which one way of rounding gives every output that was seen, while those of no other do: products
    that come out the same in all of them tell nothing.
    """
    singles = [one for one in sums if len(one.a) == 1]
    if not singles or not all(one.complete for one in singles):
        return ""
    standing = [form for form in FORMS if any(_gives(form, how, singles) for how in _ROUNDINGS)]
    return standing[0] if len(standing) == 1 else ""


def _gives(form: str, rounding: Rounding, singles: Sequence[Sum]) -> bool:
    return all(set(one.outputs) == {_made(form, rounding, one.a[0], one.b[0])} for one in singles)


def _made(form: str, rounding: Rounding, a: int, b: int) -> int:
    """The FP32 word of the product of two FP32 words that were rounded first."""
    number = product(*(decode(_rounded(form, rounding, word), "fp32") for word in (a, b)))
    special = special_sum([number])
    if special is not None:
        return -1  # no vector has one
    return encode(number.significand, number.scale, "fp32", "RNE")


def _rounded(form: str, rounding: Rounding, word: int) -> int:
    if form == FP32:
        return word
    if form == FP16:
        return convert(convert(word, "fp32", "fp16"), "fp16", "fp32")
    return round_input(word, form.lower(), rounding)


def unit(sums: Iterable[Sum], compute_capability: str | None = None) -> str:
    """The unit that all the sums' bits prove, as signatures.read names it; "" where they prove none."""
    reading = read([_signature(one) for one in sums], compute_capability, "tf32")
    return reading.unit if reading.says == "tensor" else ""


def _signature(one: Sum) -> Signature:
    words = [f"{word:08X}" for word in one.outputs]
    return Signature(
        vector=one.vector,
        input_type="fp32",
        output_type="fp32",
        a=[f"{word:08X}" for word in one.a],
        b=[f"{word:08X}" for word in one.b],
        slots=list(range(len(one.a))),
        length=_LENGTH,
        outputs=[Output(bits=word, count=1) for word in words],
        distinct=len(words) + (not one.complete),
    )
