"""What the recorded bits say: derived from the inputs that are recorded with them."""

from __future__ import annotations

import random
import struct

import msgspec
import pytest
from dots import ONE, dot, recorded, rival, signature, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.collector.kernels.vectors import SETS, VECTORS, width_vectors
from envcheck.facts.micro_kernels import Mode, Output, Signature
from envcheck.tensorcores.candidates import Candidate, Dot, in_place, outputs
from envcheck.tensorcores.chains import add_words
from envcheck.tensorcores.mode_verdict import Reading
from envcheck.tensorcores.model import run
from envcheck.tensorcores.signatures import read

QUICK = settings(max_examples=15, deadline=None)
S1 = ("S1", "fp16", "fp32")
TENSOR, CHAIN = 0x3F800001, 0x3F800002  # what S1 gives


def replaced(one: Signature, **fields: object) -> Signature:
    return msgspec.structs.replace(one, **fields)


@pytest.mark.parametrize(
    ("capability", "mode", "input_type", "kept", "bits"),
    [
        ("7.0", "fp16", "fp16", 23, "S1 3F800001"),
        ("7.5", "fp16", "fp16", 24, "S1 3F800001"),
        ("8.6", "bf16", "bf16", 24, "S1 3F800001"),
        ("9.0", "bf16", "bf16", 25, "S1 3F800001"),
        ("8.0", "tf32", "fp32", 24, "S1/T1 3F800001/3F800000"),
        ("10.0", "tf32", "fp32", 25, "S1/T1 3F800001/3F800000"),
        ("9.0", "fp8", "e4m3", 13, "F8/S1e 3F800400/47800000"),
        ("10.0", "fp8", "e4m3", 25, "F8/S1e 3F800780/47800001"),
    ],
)
def test_tensor_cores_are_named(
    capability: str, mode: Mode, input_type: str, kept: int, bits: str
) -> None:
    some = recorded(tensor(capability, input_type, "fp32"), input_type, "fp32")
    inputs = ", TF32 inputs" if mode == "tf32" else ""
    unit = f"Tensor Core, {kept} fraction bits kept{inputs}"
    text = f"{bits}: truncated, F={kept}{inputs}"
    assert read(some, capability, mode) == Reading(says="tensor", unit=unit, text=text)
    for other in (None, "10.3"):  # not known: named all the same
        assert read(some, other, mode).unit == unit


def level0(core: Candidate, input_type: str) -> list[Signature]:
    """All that the lowest level records of a mode, the vectors of widths and W16 (upon 1) with it."""
    some = recorded(core, input_type, "fp32")
    for name, c in [("W16", ONE), *((one.name, 0) for one in width_vectors(input_type))]:
        (word,) = in_place(core, dot(name, input_type, "fp32", c))
        some.append(signature(name, input_type, "fp32", word, c=c or None))
    return some


@pytest.mark.parametrize(
    ("capability", "mode", "input_type"),
    [("7.0", "fp16", "fp16"), ("8.0", "tf32", "fp32"), ("9.0", "bf16", "bf16")],
)
def test_level_0_reads_with_its_vectors_of_widths(
    capability: str, mode: Mode, input_type: str
) -> None:
    core = tensor(capability, input_type, "fp32")
    assert core.unit
    reading = read(level0(core, input_type), capability, mode)
    assert reading.says == "tensor" and f"F={core.unit.fraction_bits}" in reading.text
    assert (
        read(level0(rival(input_type, "fp32"), input_type), capability, mode).says == "not tensor"
    )
    for block in (core.unit.block // 2, core.unit.block * 2):
        other = core._replace(unit=core.unit._replace(block=block))
        assert read(level0(other, input_type), capability, mode).unknown, block


def test_the_arithmetic_of_another_generation_is_tensor_and_said() -> None:
    some = recorded(tensor("8.0", "fp16", "fp32"), "fp16", "fp32")
    reading = read(some, "9.0", "fp16")
    assert reading.says == "tensor"
    assert reading.unit == "Tensor Core, 24 fraction bits kept (compute capability 9.0 keeps 25)"
    assert "truncated, F=24 (compute capability 9.0 keeps 25)" in reading.text
    some = recorded(tensor("8.0", "fp32", "fp32"), "fp32", "fp32")
    assert "(compute capability 9.0 keeps 25), TF32 inputs" in read(some, "9.0", "tf32").unit


@pytest.mark.parametrize(
    ("mode", "types", "accumulator", "unit"),
    [
        ("fp32", ("fp32", "fp32"), "fp32", "FP32 FMA chain"),
        ("fp16", ("fp16", "fp32"), "fp32", "FP32 FMA chain"),
        ("fp16", ("fp16", "fp32"), "fp16", "FP16 FMA chain"),
        ("fp16", ("fp16", "fp16"), "fp32", "FP32 FMA chain"),
        ("fp16", ("fp16", "fp16"), "fp16", "FP16 FMA chain"),
        ("bf16", ("bf16", "fp32"), "fp32", "FP32 FMA chain"),
        ("bf16", ("bf16", "bf16"), "fp32", "FP32 FMA chain"),
        ("bf16", ("bf16", "bf16"), "bf16", "BF16 FMA chain"),
        ("fp8", ("e4m3", "fp32"), "fp32", "FP32 FMA chain"),
    ],
)
def test_chains_are_not_tensor_cores(
    mode: Mode, types: tuple[str, str], accumulator: str, unit: str
) -> None:
    for capability in ("7.0", "9.0", None):
        reading = read(recorded(rival(*types, accumulator), *types), capability, mode)
        assert (reading.says, reading.unit) == ("not tensor", unit)
        assert reading.text.endswith(f": {unit}") and not reading.unknown


@pytest.mark.parametrize(
    ("bits", "says", "meaning"),
    [
        ((0x3C00, 0x3C01, 0x3C01), "tensor", "FP32 accumulator"),
        ((0x3C01, 0x3C01, 0x3C01), "not tensor", "FP32 FMA chain"),
        ((0x3C00, 0x3C00, 0x3C00), "not tensor", "FP16 FMA chain"),
        ((0x3C01, 0x3C01, 0x3C00), "tensor", "FP16 accumulator"),
        ((0x3C00, 0x3C01, 0x3C00), "tensor", "FP16 accumulator, F=23"),
        ((0x3C01, 0x3C00, 0x3C00), "cannot tell", "unknown arithmetic"),
    ],
)
def test_half_precision_outputs_are_read_together(
    bits: tuple[int, ...], says: str, meaning: str
) -> None:
    names = ("S1h", "A16", "A16s")
    some = [signature(name, "fp16", "fp16", word) for name, word in zip(names, bits, strict=True)]
    reading = read(some, None, "fp16")
    assert (reading.says, reading.text.partition(": ")[2]) == (says, meaning)
    for left_out in range(3):
        part = read(some[:left_out] + some[left_out + 1 :], "9.0", "fp16")
        assert part.says == "cannot tell" and names[left_out] in part.text


@pytest.mark.parametrize(
    ("t1", "t2", "t3", "says", "way"),
    [
        (0x3F800000, 0x3F800000, 0x3F802000, "tensor", "TF32 inputs"),  # cut, as mma.sync does
        (0x3F802000, 0x3F802000, 0x3F802000, "tensor", "TF32 inputs"),  # to nearest, ties away
        (0x3F802000, 0x3F800000, 0x3F802000, "tensor", "TF32 inputs"),  # ties to even
        (0x3F800000, 0x3F800000, 0x3F800000, "tensor", "BF16 inputs"),
        (0x3F801800, 0x3F801000, 0x3F802000, "tensor", "FP32 emulated"),
        (0x3F800000, 0x3F802000, 0x3F802000, "cannot tell", "unknown arithmetic"),
    ],
)
def test_how_fp32_words_were_taken_in(t1: int, t2: int, t3: int, says: str, way: str) -> None:
    core = tensor("9.0", "fp32", "fp32")
    some = recorded(core, "fp32", "fp32", leave_out="T1 T2 T3")
    some += [signature(f"T{i}", "fp32", "fp32", t) for i, t in ((1, t1), (2, t2), (3, t3))]
    for mode in ("fp32", "tf32"):
        reading = read(some, "9.0", mode)
        assert reading.says == says and reading.text.endswith(way)
        assert reading.unknown is (says == "cannot tell")


def test_fp32_chains_of_rounded_inputs_are_not_tensor_cores() -> None:
    for inputs in ("tf32", "bf16"):
        reading = read(
            recorded(rival("fp32", "fp32", inputs=inputs), "fp32", "fp32"), "9.0", "tf32"
        )
        assert (reading.says, reading.unit) == (
            "not tensor",
            f"FP32 FMA chain with {inputs.upper()} inputs",
        )


def test_int8_is_exact_or_wrong_and_tells_nothing() -> None:
    reading = read([signature("I8", "int8", "int32", 77 * 55)], "9.0", "int8")
    assert (reading.says, reading.blind, reading.wrong) == ("cannot tell", True, "")
    assert reading.text == "I8 0000108B: exact, as on every unit"
    reading = read([signature("I8", "int8", "int32", 77 * 55, 77 * 55 + 1)], "9.0", "int8")
    assert reading.blind and reading.wrong.startswith(
        "The INT8 product of I8 is not exact: 0000108B is"
    )
    assert read([], "9.0", "int8").blind


@pytest.mark.parametrize(("capability", "blind"), [("10.0", True), (None, True), ("9.0", False)])
def test_f8_alone_is_blind_where_the_unit_keeps_all_of_it(
    capability: str | None, blind: bool
) -> None:
    reading = read([signature("F8", "e4m3", "fp32", 0x3F800780)], capability, "fp8")
    assert (reading.says, reading.blind) == ("cannot tell", blind)
    assert "the same from a Tensor Core and by FP32 FMA chain" in reading.text


@pytest.mark.parametrize("name", ["S1", "S1n", "C1", "C1n"])
def test_a_single_wrong_bit_is_no_tensor_core(name: str) -> None:
    core = tensor("9.0", "fp16", "fp32")
    some = recorded(core, "fp16", "fp32", leave_out=name)
    (right,) = outputs(core, dot(name, "fp16", "fp32"))
    assert read([*some, signature(name, "fp16", "fp32", right)], "9.0", "fp16").says == "tensor"
    for bit in range(32):
        reading = read([*some, signature(name, "fp16", "fp32", right ^ 1 << bit)], "9.0", "fp16")
        assert reading.says == "cannot tell" and reading.unknown, bit


def test_unknown_arithmetic_is_shown() -> None:
    some = [signature(*S1, 0x3F800003), signature("C1", "fp16", "fp32", 0x40000002)]
    reading = read(some, "9.0", "fp16")
    assert reading == Reading(
        says="cannot tell", text="S1 3F800003: unknown arithmetic", unknown=True
    )
    # each known, but not of one unit
    both = read([signature(*S1, TENSOR), some[1]], "9.0", "fp16")
    assert both.text == "S1 3F800001, C1 40000002: unknown arithmetic"


def test_what_is_expected_follows_the_recorded_inputs() -> None:
    """S1 with 2.75 * 2^-23 beside the one: what is a chain's word for the other inputs is a unit's here."""
    other = replaced(signature(*S1, CHAIN), a=["3C00", "0C00"], b=["3C00", "1580"])
    assert read([signature(*S1, CHAIN)], "9.0", "fp16").says == "not tensor"
    assert read([other], "9.0", "fp16").says == "tensor"


def test_outputs_that_differ_from_place_to_place() -> None:
    reading = read([signature(*S1, TENSOR, CHAIN)], "9.0", "fp16")
    assert reading.says == "cannot tell"
    assert reading.wrong.startswith("S1 gave 3F8000") and "in one product" in reading.wrong
    chain = recorded(rival("fp16", "fp32"), "fp16", "fp32", leave_out="S2")
    either = signature("S2", "fp16", "fp32", 0x34000000, 0x33F80000)  # by the order of its terms
    assert read([*chain, either], "9.0", "fp16").says == "not tensor"
    more = replaced(signature(*S1, TENSOR), distinct=9)
    assert read([more], "9.0", "fp16").says == "cannot tell"


def test_sets_of_types_are_read_one_by_one() -> None:
    core, half = tensor("9.0", "fp16", "fp32"), tensor("9.0", "fp16", "fp16", "fp16")
    singles, halves = recorded(core, "fp16", "fp32"), recorded(half, "fp16", "fp16")
    chains = recorded(rival("fp16", "fp16", "fp16"), "fp16", "fp16")
    both = read([*halves, *singles], "9.0", "fp16")
    assert (both.says, both.unit) == ("tensor", "Tensor Core, 25 fraction bits kept")
    assert (
        both.text == "S1 3F800001: truncated, F=25; S1h/A16/A16s 3C01/3C01/3C00: FP16 accumulator"
    )
    apart = read([*singles, *chains], "9.0", "fp16")
    assert apart.says == "cannot tell" and apart.unit == ""
    assert apart.text.endswith("3C00/3C00/3C00: FP16 FMA chain; the kinds of output disagree")
    assert read([*singles, *halves[:1]], "9.0", "fp16").says == "tensor"
    assert read([*chains, *halves[:0], signature(*S1, CHAIN)], "9.0", "fp16").says == "not tensor"


UNUSABLE: list[dict[str, object]] = [
    {"length": 1000, "slots": list(range(1000)), "a": ["3C00"] * 1000, "b": ["3C00"] * 1000},
    {"slots": [0, 0]},
    {"slots": [0, -1]},
    {"slots": [0, 10**30]},
    {"slots": [], "a": [], "b": []},
    {"slots": [0]},
    {"length": 1},
    {"a": ["7C00", "0C00"]},
    {"a": ["3C00", "7E00"]},
    {"a": ["3C", "0C00"]},
    {"a": ["3C00", "XYZW"]},
    {"a": [None, 7]},
    {"accumulator": "7FC00000"},
    {"accumulator": "3C00"},
    {"outputs": []},
    {"outputs": [Output(bits="3C00", count=1)]},
    {"outputs": [Output(bits="3F800001", count=1)] * 9},
    {"outputs": ["3F800001"]},
    {"input_type": "int8"},
    {"output_type": "int32"},
    {"output_type": "e4m3"},
    {"input_type": "fp32"},
]


def test_what_cannot_be_used_cannot_tell() -> None:
    for fields in UNUSABLE:
        reading = read([replaced(signature(*S1, TENSOR), **fields)], "9.0", "fp16")
        assert (reading.says, reading.unit) == ("cannot tell", "") and reading.text, fields
        assert not reading.wrong and not reading.unknown, fields


def test_large_and_strange_records_are_read_all_the_same() -> None:
    one = signature(*S1, TENSOR)
    assert read(
        [replaced(one, length=10**9, slots=[0, 10**9 - 1], period=10**9)], "9.0", "fp16"
    ).text
    assert read([one] * 65, "9.0", "fp16").says == "cannot tell"
    assert read([one] * 64, "9.0", "fp16").says == "tensor"
    assert read([], "9.0", "fp16") == Reading(says="cannot tell", text="no output was recorded")
    strange = replaced(one, vector="\x1b[31m" + "S" * 10**5)
    assert read([strange], "\x1b", "fp16").text.startswith("31mSSSSS") is True


bits = st.sampled_from(
    ["00", "3C00", "7C00", "0C00", "3F80", "3F800000", "7F800000", "FFFFFFFF", "38"]
)
hostile = st.builds(
    Signature,
    vector=st.sampled_from(["S1", "S1h", "A16", "", "?"]),
    input_type=st.sampled_from(["fp32", "fp16", "bf16", "e4m3", "int8", "int32"]),
    output_type=st.sampled_from(["fp32", "fp16", "bf16", "e4m3", "int8", "int32"]),
    a=st.lists(bits, max_size=4),
    b=st.lists(bits, max_size=4),
    slots=st.lists(st.integers(-1, 10**12), max_size=4),
    length=st.integers(-1, 10**12),
    accumulator=bits,
    outputs=st.lists(st.builds(Output, bits=bits, count=st.integers(-1, 9)), max_size=3),
    distinct=st.integers(-1, 4),
)


@QUICK
@given(st.lists(hostile, max_size=4), st.sampled_from(["fp32", "fp16", "bf16", "int8", "fp8"]))
def test_reading_never_raises(some: list[Signature], mode: Mode) -> None:
    assert read(some, "9.0", mode).says in ("tensor", "not tensor", "cannot tell")


# What each candidate may give.


def test_a_chain_has_a_word_for_every_order_and_split() -> None:
    """Products of more than eleven bits, beside ties: what is rounded first, and whether both are."""
    chain = rival("fp16", "fp16", "fp16")
    by_order = Dot("fp16", "fp16", (0x3C01, 0x3C01), (0x3C01, 0x0FFE), (0, 1), 0)
    assert outputs(chain, by_order) == {0x3C02, 0x3C03}
    by_split = Dot("fp16", "fp16", (0x3C01, 0x3E03), (0x3BFE, 0x13FC), (0, 1), 0)
    assert outputs(chain, by_split) == {0x3C01, 0x3C02}


def test_a_slice_may_end_between_terms_that_are_sixteen_apart() -> None:
    core, one = tensor("9.0", "fp16", "fp32"), dot(*S1)
    assert outputs(core, one) == {TENSOR}
    assert outputs(core, one._replace(slots=(15, 16))) == {TENSOR, CHAIN}


# Survival: whatever the kernel does with the order of the terms, the outputs stay within the sets.


def single(number: float) -> float:
    """Rounded to FP32, by the C library."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


@QUICK
@given(st.sampled_from(SETS["fp16", "fp32"]), st.randoms(use_true_random=False))
def test_chains_of_any_order_and_split(name: str, chance: random.Random) -> None:
    terms = [float(x * y) for x, y in zip(VECTORS[name].a, VECTORS[name].b, strict=True)]
    chance.shuffle(terms)
    partial = [0.0] * chance.randint(1, 3)
    for term in terms:  # the sum of two floats so close is exact in a double
        i = chance.randrange(len(partial))
        partial[i] = single(partial[i] + term)
    chance.shuffle(partial)
    total = 0.0
    for one in partial:
        total = single(total + one)
    (word,) = struct.unpack("<I", struct.pack("<f", total))
    assert word in outputs(rival("fp16", "fp32"), dot(name, "fp16", "fp32"))


@QUICK
@given(
    st.sampled_from(["7.0", "8.0", "9.0"]),
    st.sampled_from(SETS["fp16", "fp32"]),
    st.integers(0, 7),
    st.sampled_from([1, 2, 4, 8]),
    st.randoms(use_true_random=False),
)
def test_tensor_cores_over_slices_and_permutations_of_sixteen(
    capability: str, name: str, place: int, slices: int, chance: random.Random
) -> None:
    core = tensor(capability, "fp16", "fp32")
    assert core.unit
    one = dot(name, "fp16", "fp32")
    a, b = [0] * 128, [0] * 128
    order = list(range(16))
    chance.shuffle(order)
    for slot, x, y in zip(one.slots, one.a, one.b, strict=True):
        a[16 * place + order[slot]], b[16 * place + order[slot]] = x, y
    total, size = 0, 128 // slices
    for start in range(0, 128, size):
        total = add_words(
            total, run(core.unit, a[start : start + size], b[start : start + size]), "fp32"
        )
    assert total in outputs(core, one)
    if name != "S2":  # the only one whose word depends on which terms share a block
        assert outputs(core, one) == {run(core.unit, one.a, one.b)}
