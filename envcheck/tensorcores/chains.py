"""The rivals of Tensor Cores: dot products by chains of fused multiply-adds, and exact integer ones.

Every step of a chain rounds to nearest, ties to even, in the accumulator's type. What order the terms come
in, and over how many partial accumulators they are spread, is the kernel's business, so a chain has a set
of possible results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from .formats import Number, decode, encode, encode_special, integer, special_sum

MOST_ORDERED = 3  # with more terms, the one order that is looked at is the recorded one


def chain(products: Sequence[Number], c: int, accumulator_type: str) -> int:
    """The accumulator's word after one fused multiply-add for each exact product, in this order."""
    for one in products:
        c = add((one, decode(c, accumulator_type)), accumulator_type)
    return c


def chain_any_order(products: Sequence[Number], c: int, accumulator_type: str) -> frozenset[int]:
    """All words that a chain may end with, whatever its order and its partial accumulators.

    One of the accumulators begins with ``c``, the others with zero; partial results are added in the
    accumulator's type. Beyond `MOST_ORDERED` products: the one word of their own order.
    """
    if len(products) > MOST_ORDERED:
        return frozenset((chain(products, c, accumulator_type),))

    def sums(chosen: frozenset[int], start: int) -> set[int]:
        if not chosen:
            return {start}
        found = {
            add((products[last], decode(word, accumulator_type)), accumulator_type)
            for last in chosen
            for word in sums(chosen - {last}, start)
        }
        for part in parts(chosen):
            for first in sums(part, start):
                for second in sums(chosen - part, 0):
                    found.add(add_words(first, second, accumulator_type))
        return found

    return frozenset(sums(frozenset(range(len(products))), c))


def parts(whole: frozenset[int]) -> Iterator[frozenset[int]]:
    """Every part of a set but the empty one and the whole."""
    for size in range(1, len(whole)):
        yield from map(frozenset, combinations(sorted(whole), size))


def add_words(first: int, second: int, element_type: str) -> int:
    """The sum of two words of a type, in that type."""
    return add((decode(first, element_type), decode(second, element_type)), element_type)


def add(terms: Sequence[Number], element_type: str) -> int:
    """The exact sum, rounded once to nearest, ties to even; a sum of zero is +0."""
    special = special_sum(terms)
    if special is not None:
        return encode_special(special, element_type)
    scale = min(term.scale for term in terms)
    total = sum(term.significand << term.scale - scale for term in terms)
    return encode(total, scale, element_type, "RNE")


def integer_dot(a: Sequence[int], b: Sequence[int], c: int) -> int:
    """The INT32 word of the dot product of INT8 words, exact but for what runs over 32 bits."""
    total = c + sum(integer(x, 8) * integer(y, 8) for x, y in zip(a, b, strict=True))
    return total & 0xFFFFFFFF
