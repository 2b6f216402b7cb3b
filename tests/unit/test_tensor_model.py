"""The model of Tensor Core arithmetic: the vectors' known bits, and what must hold for any numbers."""

from __future__ import annotations

import struct
from fractions import Fraction

import pytest
from dots import ONE, vector, words
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.data import table
from envcheck.tensorcores.formats import Rounding, convert, decode, encode, round_input
from envcheck.tensorcores.model import multiply_add, run
from envcheck.tensorcores.units import Unit, known_units, unit_of

QUICK = settings(max_examples=15, deadline=None)
FP16_TO_FP32 = ("7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
FRACTIONS = {
    "7.0": 23,
    "7.5": 24,
    "8.0": 24,
    "8.6": 24,
    "8.9": 24,
    "9.0": 25,
    "10.0": 25,
    "12.0": 25,
}
# (block of FP16 and BF16, of TF32, of FP8, fraction bits of FP8's sums); None: no such unit
WIDTHS = {
    "7.0": (4, None, None, None),
    "7.5": (8, None, None, None),
    "8.0": (8, 4, None, None),
    "8.6": (8, 4, None, None),
    "8.9": (8, 4, 16, 13),
    "9.0": (16, 8, 32, 13),
    "10.0": (16, 8, 32, 25),
    "12.0": (16, 8, 32, 25),
}
FP32 = "tf32"  # words of FP32, for what FP16 cannot reach
INFINITY, MINUS, NAN, HUGE = 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x7F000000  # HUGE: 2^127
S2 = {23: 0x00000000, 24: 0x33800000, 25: 0x33C00000}
SAME_EVERYWHERE = {"S1": 0x3F800001, "S1n": 0xBF800001, "C1": 0x40000001, "C1n": 0xC0000001}


def value(word: int, element_type: str = "fp32") -> Fraction:
    number = decode(word, element_type)
    assert number.kind == "finite"
    return number.significand * Fraction(2) ** number.scale


def types(capability: str) -> list[str]:
    """Input types whose unit adds to FP32 as wide as FP16's does."""
    return [t for t in ("fp16", "bf16", "tf32") if unit_of(capability, t, "fp32")]


def test_every_row_has_a_source_and_one_unit_serves_a_chip_and_type() -> None:
    rows = table("tensor_units")
    assert all(row["source"] and row["seen_on"] for row in rows)
    keys = [(r["compute_capability"], r["input_type"], r["accumulator_type"]) for r in rows]
    assert len(set(keys)) == len(keys) == sum(map(len, known_units().values()))
    assert all(unit_of(*key) for key in keys)
    assert all(
        r["output_rounding"] == ("RZ" if r["accumulator_type"] == "fp32" else "RNE") for r in rows
    )


@pytest.mark.parametrize("capability", FP16_TO_FP32)
def test_the_table_is_that_of_the_sources(capability: str) -> None:
    def of(input_type: str, *fields: str) -> list[int | None]:
        unit = unit_of(capability, input_type, "fp32")
        return [unit and getattr(unit, field) for field in fields]

    half, tf32, fp8, fp8_fraction = WIDTHS[capability]
    assert of("fp16", "fraction_bits", "block") == [FRACTIONS[capability], half]
    assert of("tf32", "block") == [tf32]
    for input_type in ("e4m3", "e5m2"):
        assert of(input_type, "block", "fraction_bits") == [fp8, fp8_fraction]
    assert of("bf16", "fraction_bits", "block") == (
        of("fp16", "fraction_bits", "block") if tf32 else [None] * 2
    )
    unit = unit_of(capability, "fp16", "fp16")
    assert unit and (unit.fraction_bits, unit.block) == (FRACTIONS[capability], half)


@pytest.mark.parametrize("capability", FP16_TO_FP32)
def test_vectors_of_fp32_outputs(capability: str) -> None:
    expected = {**SAME_EVERYWHERE, "S2": S2[FRACTIONS[capability]]}
    assert types(capability)
    for input_type in types(capability):
        for name, bits in expected.items():
            got = multiply_add(*words(vector(name), input_type), 0, input_type, "fp32", capability)
            assert f"{got:08X}" == f"{bits:08X}", (name, input_type)


@pytest.mark.parametrize("capability", FP16_TO_FP32)
def test_h_tells_the_width_of_a_block(capability: str) -> None:
    """Half a block of small terms and the 1 are one block; a whole block of them comes before the 1."""
    for input_type in types(capability):
        unit = unit_of(capability, input_type, "fp32")
        assert unit is not None
        for count, dropped in ((unit.block // 2, True), (unit.block, False)):
            name = f"H{count}/{unit.fraction_bits}"
            got = multiply_add(*words(vector(name), input_type), 0, input_type, "fp32", capability)
            assert (got == 0) is dropped, (input_type, name)


@pytest.mark.parametrize(
    ("capability", "f8"),
    [("8.9", 0x3F800400), ("9.0", 0x3F800400), ("10.0", 0x3F800780), ("12.0", 0x3F800780)],
)
def test_vectors_of_fp8(capability: str, f8: int) -> None:
    wide = f8 == 0x3F800780
    expected = {
        "F8": f8,
        "S1e": 0x47800001 if wide else 0x47800000,  # 2^16 where S1 has 1
        "S2e": 0x3BC00000 if wide else 0,
        "C1e": 0x40000600 if wide else 0x40000400,  # toward zero in 13 bits, exact in 23
        "C1ne": 0xC0000600 if wide else 0xC0000400,
    }
    for name, bits in expected.items():
        got = multiply_add(*words(vector(name), "e4m3"), 0, "e4m3", "fp32", capability)
        assert f"{got:08X}" == f"{bits:08X}", name


@pytest.mark.parametrize(
    ("capability", "s1h", "a16", "a16s"),
    [("7.0", 0x3C00, 0x3C01, 0x3C00)] + [(c, 0x3C01, 0x3C01, 0x3C00) for c in FP16_TO_FP32[1:]],
)
def test_vectors_of_an_fp16_accumulator(capability: str, s1h: int, a16: int, a16s: int) -> None:
    for name, bits in {"S1h": s1h, "A16": a16, "A16s": a16s}.items():
        got = multiply_add(*words(vector(name), "fp16"), 0, "fp16", "fp16", capability)
        assert f"{got:04X}" == f"{bits:04X}", name


TAKEN_IN = {  # of T1, T2 and T3
    "RZ": (0x3F800000, 0x3F800000, 0x3F802000),
    "RNA": (0x3F802000, 0x3F802000, 0x3F802000),
    "RNE": (0x3F802000, 0x3F800000, 0x3F802000),
}


@pytest.mark.parametrize("rounding", ["RZ", "RNA", "RNE"])
def test_fp32_words_are_rounded_to_tf32(rounding: Rounding) -> None:
    for name, expected in zip(("T1", "T2", "T3"), TAKEN_IN[rounding], strict=True):
        for capability in ("8.0", "9.0"):
            got = multiply_add(
                *words(vector(name), "tf32"), 0, "tf32", "fp32", capability, rounding
            )
            assert f"{got:08X}" == f"{expected:08X}"
    assert round_input(0x3F802000, "bf16", rounding) == 0x3F800000


def test_ties_to_even_go_both_ways_and_no_nan_wraps_round() -> None:
    assert round_input(0x3F803000, "tf32", "RNE") == 0x3F804000
    assert round_input(0xBF801000, "tf32", "RNE") == 0xBF800000
    assert round_input(0x7FFFFFFF, "tf32", "RNA") == 0x7FFFE000
    assert round_input(0x7F7FFFFF, "tf32", "RNA") == INFINITY
    with pytest.raises(ValueError, match="RD"):
        round_input(ONE, "tf32", "RD")


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        ([HUGE, HUGE], [ONE, ONE], 0, INFINITY),  # 2^128, under truncation too
        ([HUGE], [0xBF800000], 0xFF000000, MINUS),
        ([HUGE], [0x3F7FE000], 0x7EFFFFFF, 0x7F7FEFFF),  # 2^128 less 4096.5 last places
        ([INFINITY], [ONE], 0, INFINITY),
        ([INFINITY], [0xBF800000], HUGE, MINUS),
        ([INFINITY], [0], 0, NAN),
        ([INFINITY], [ONE], MINUS, NAN),
        ([ONE], [ONE], 0x7FC00000, NAN),
        ([0x7F800001], [ONE], 0, INFINITY),  # a NaN whose fraction TF32 cuts off
        ([0x80000000], [ONE], 0x80000000, 0),  # -0 and -0
        ([0x00400000], [ONE], 0, 0x00400000),  # subnormal
        ([], [], 0xBF800001, 0xBF800001),
        ([0], [HUGE], 0x30800001, 0x30800001),  # zeros align nothing
    ],
)
def test_what_is_special(a: list[int], b: list[int], c: int, expected: int) -> None:
    got = multiply_add(a, b, c, FP32, "fp32", "9.0")
    assert f"{got:08X}" == f"{expected:08X}"


def test_fp16_results_round_to_nearest_even_once_and_overflow_so() -> None:
    def fp16(a: float, b: float, c: float) -> float:
        a16, b16, c16 = (struct.unpack("<H", struct.pack("<e", x))[0] for x in (a, b, c))
        word = multiply_add([a16], [b16], c16, "fp16", "fp16", "9.0")
        return struct.unpack("<e", word.to_bytes(2, "little"))[0]

    assert (fp16(0.5, 1, 1024), fp16(1.5, 1, 1024)) == (1024, 1026)
    assert (fp16(0.25, 32, 65504), fp16(0.5, 32, 65504)) == (65504, float("inf"))
    assert (fp16(0.5, 2**-24, 0), fp16(0.75, 2**-24, 0)) == (0, 2**-24)


def test_products_are_aligned_before_they_are_normalised() -> None:
    """1.5 * 1.5 counts as 2^0, though it is 2.25: the bit below survives that 2.25 * 1 would cut."""
    tiny = encode(1, -24, "fp32", "RZ")  # F = 24 on compute capability 8.0
    for factors, left in (((1.5, 1.5), tiny), ((2.25, 1.0), 0)):
        x, y = (
            convert(struct.unpack("<I", struct.pack("<f", f))[0], "fp32", "bf16") for f in factors
        )
        got = multiply_add([x, x ^ 0x8000], [y, y], tiny, "bf16", "fp32", "8.0")
        assert got == left, factors


# What must hold for any numbers.

half_words = st.integers(0, 0xFFFF).filter(lambda w: w & 0x7C00 != 0x7C00)  # FP16, finite
pairs = st.lists(st.tuples(half_words, half_words), min_size=1, max_size=12)
units = st.sampled_from(sorted(u for u in known_units() if u.input_type == "fp16"))


@QUICK
@given(pairs)
def test_wide_enough_is_the_exact_sum_truncated(some: list[tuple[int, int]]) -> None:
    exact = sum((value(a, "fp16") * value(b, "fp16") for a, b in some), Fraction(0))
    got = run(Unit("fp16", "fp32", 500, 32, "RZ", 23), [a for a, _ in some], [b for _, b in some])
    assert abs(value(got)) <= abs(exact)
    step = Fraction(2) ** max(decode(got, "fp32").scale, -149)
    assert abs(exact) - abs(value(got)) < step


@QUICK
@given(half_words, half_words, units)
def test_a_single_product_is_exact(a: int, b: int, unit: Unit) -> None:
    exact = value(a, "fp16") * value(b, "fp16")
    got = run(unit, [a], [b])
    if unit.accumulator_type == "fp32":
        assert value(got) == exact
    elif abs(exact) < 65520:
        assert value(got, "fp16") == Fraction(*rounded_half(exact).as_integer_ratio())


def rounded_half(exact: Fraction) -> float:
    """By the C library: a product of two FP16 numbers is exact in a double."""
    return struct.unpack("<e", struct.pack("<e", float(exact)))[0]


@QUICK
@given(st.floats(width=32, allow_nan=False))
def test_rounding_to_fp16_is_the_c_librarys(number: float) -> None:
    word = struct.unpack("<I", struct.pack("<f", number))[0]
    try:
        expected = struct.unpack("<H", struct.pack("<e", number))[0]
    except OverflowError:
        expected = 0x7C00 if number > 0 else 0xFC00
    got = convert(word, "fp32", "fp16")
    assert got == expected or {got, expected} == {0, 0x8000}


def test_e4m3_is_as_the_ocp_has_it() -> None:
    assert value(0x7E, "e4m3") == 448 and value(0x01, "e4m3") == Fraction(1, 512)
    assert value(0x08, "e4m3") == Fraction(1, 64) and value(0xB8, "e4m3") == -1
    assert decode(0x7F, "e4m3").kind == decode(0xFF, "e4m3").kind == "nan"
    assert decode(0x7C, "e5m2").kind == "infinite" and decode(0x7D, "e5m2").kind == "nan"
    with pytest.raises(ValueError, match="input format"):
        encode(1, 0, "e4m3", "RNE")
