"""The signature vectors, and the large matrices that carry them to every place of a product."""

from __future__ import annotations

import struct
from fractions import Fraction

import msgspec
import pytest
from dots import vector

from envcheck.collector.kernels.matrices import bands, left, right, signatures
from envcheck.collector.kernels.vectors import (
    S2H,
    SETS,
    SIZES,
    VECTORS,
    W16,
    encode,
    pack,
    text,
    width_vectors,
)
from envcheck.facts.micro_kernels import Signature
from envcheck.tensorcores.formats import decode, integer


def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


# The table of the vectors: the exact sum of each, which no unit gives.
EXACT = {
    "S1": 1 + Fraction(3, 2) * power(-23),
    "S1n": -1 - Fraction(3, 2) * power(-23),
    "S2": Fraction(31, 16) * power(-24),
    "C1": 2 + Fraction(3, 2) * power(-22),
    "C1n": -2 - Fraction(3, 2) * power(-22),
    "S1h": 1 + power(-11) + Fraction(3, 4) * power(-23),
    "S1b": 1 + power(-8) + Fraction(3, 4) * power(-23),
    "A16": 1 + power(-11) + power(-22),
    "A16s": 1 + power(-11) + power(-22),
    "B16": 1 + power(-8) + power(-16),
    "F8": 1 + Fraction(15, 8) * power(-13),
    "S1e": power(16) + Fraction(3, 2) * power(-7),
    "S1ne": -power(16) - Fraction(3, 2) * power(-7),
    "S2e": Fraction(15, 8) * power(-8),
    "C1e": 2 + Fraction(3, 2) * power(-12),
    "C1ne": -2 - Fraction(3, 2) * power(-12),
    "T1": 1 + power(-11) + power(-12),
    "T2": 1 + power(-11),
    "T3": 1 + power(-10),
    "I8": Fraction(127 * -128 + -128 * -127 + 77 * 55),
}


def value(word: int, element_type: str) -> Fraction:
    if element_type == "int8":
        return Fraction(integer(word, 8))
    number = decode(word, element_type)
    return number.significand * Fraction(2) ** number.scale


@pytest.mark.parametrize("input_type", ["fp16", "bf16", "fp32", "e4m3", "int8"])
def test_values_are_exact_in_every_type_that_they_are_used_with(input_type: str) -> None:
    used = [
        VECTORS[name] for (given, _), names in SETS.items() if given == input_type for name in names
    ]
    if input_type not in ("fp32", "int8"):
        used += width_vectors(input_type)
    if input_type == "fp16":
        used += [S2H, *width_vectors("fp16", "fp16")]
    if input_type in ("fp16", "bf16"):
        used.append(W16)
    assert used
    for one in used:
        for exact in (*one.a, *one.b):
            assert value(encode(exact, input_type), input_type) == exact, one.name


def lines(data: bytes, input_type: str, length: int) -> list[tuple[tuple[int, int], ...]]:
    """A matrix's lines, each as (place, word) of what is not zero."""
    code = {1: "B", 2: "H", 4: "I"}[SIZES[input_type]]
    return [
        tuple((k, word) for k, word in enumerate(line) if word)
        for line in struct.iter_unpack(f"<{length}{code}", data)
    ]


class Exact:
    """An exact product of the matrices, in which each different sum is a word of its own."""

    def __init__(
        self, names: tuple[str, ...], input_type: str, rows: int, columns: int, length: int
    ) -> None:
        vectors = [vector(name) for name in names]
        self.sums: list[Fraction] = []
        known: dict[tuple[object, object], int] = {}

        def word(row: tuple[tuple[int, int], ...], column: tuple[tuple[int, int], ...]) -> int:
            if (row, column) not in known:
                other = dict(column)
                total = sum(
                    (
                        value(w, input_type) * value(other[k], input_type)
                        for k, w in row
                        if k in other
                    ),
                    Fraction(0),
                )
                if total not in self.sums:
                    self.sums.append(total)
                known[row, column] = self.sums.index(total)
            return known[row, column]

        a = lines(left(vectors, input_type, rows, length), input_type, length)
        b = lines(right(vectors, input_type, columns, length), input_type, length)
        assert len(a) == rows and len(b) == columns
        self.starts = [
            {row[0][0] for row in a[band.start : band.stop]} for band in bands(rows, len(names))
        ]
        self.words = [[word(row, column) for column in b] for row in a]

    def data(self, output_type: str, by_columns: bool) -> bytes:
        some = zip(*self.words, strict=True) if by_columns else self.words
        return b"".join(pack(word, output_type) for line in some for word in line)


@pytest.mark.parametrize("types", SETS)
def test_every_place_of_a_band_has_its_vectors_dot_product(types: tuple[str, str]) -> None:
    names, (input_type, output_type), rows, columns, length = SETS[types], types, 96, 48, 112
    exact = Exact(names, input_type, rows, columns, length)
    vectors = [vector(name) for name in names]
    across, down = bands(rows, len(names)), bands(columns, len(names))
    for by_columns in (False, True):
        data = exact.data(output_type, by_columns)
        result = signatures(vectors, *types, data, rows, columns, length, by_columns)
        found = [msgspec.convert(one, Signature) for one in result]
        assert [one.vector for one in found] == list(names)
        for one, some_rows, some_columns in zip(found, across, down, strict=True):
            assert one.distinct == 1 and (one.length, one.accumulator) == (length, "00")
            (output,) = one.outputs
            assert exact.sums[int(output.bits, 16)] == EXACT[one.vector]
            assert output.count == len(some_rows) * len(some_columns) > 0
            assert one.a == [text(encode(x, input_type), input_type) for x in vector(one.vector).a]


def test_a_place_that_differs_is_recorded() -> None:
    exact = Exact(("S1", "S1n"), "fp16", 32, 32, 32)
    data = bytearray(exact.data("fp32", False))
    data[:4] = pack(0xABCDEF01, "fp32")
    first, second = signatures(
        [vector("S1"), vector("S1n")], "fp16", "fp32", bytes(data), 32, 32, 32
    )
    assert first["distinct"] == 2 and second["distinct"] == 1
    assert first["outputs"][1] == {"bits": "ABCDEF01", "count": 1}
    assert first["outputs"][0]["count"] == 16 * 16 - 1
