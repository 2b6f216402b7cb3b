"""Which vector tells which wrong arithmetic apart: the model's parameters, each wrong in turn."""

from __future__ import annotations

import pytest
from dots import ONE, dot, rival, vector, words

from envcheck.collector.kernels.vectors import SETS, width_vectors
from envcheck.tensorcores.candidates import outputs
from envcheck.tensorcores.model import run
from envcheck.tensorcores.units import Unit, unit_of

FLOAT = ("S1", "S1n", "S2", "C1", "C1n", "W16")
EIGHT = ("F8", "S1e", "S1ne", "S2e", "C1e", "C1ne")


def mutants(unit: Unit) -> dict[str, Unit]:
    return {
        "F-1": unit._replace(fraction_bits=unit.fraction_bits - 1),
        "F+1": unit._replace(fraction_bits=unit.fraction_bits + 1),
        "half width": unit._replace(block=unit.block // 2),
        "double width": unit._replace(block=unit.block * 2),
        "RNE": unit._replace(output_rounding="RNE"),
        "RD": unit._replace(output_rounding="RD"),
    }


def caught(unit: Unit, mutant: Unit) -> set[str]:
    """Every vector that has other bits by the mutant."""
    names = EIGHT if unit.input_type == "e4m3" else FLOAT
    found = set()
    for name in (*names, *(f"H{count}/{unit.fraction_bits}" for count in (2, 4, 8, 16, 32))):
        a, b = words(vector(name, unit.input_type), unit.input_type)
        c = ONE if name == "W16" else 0
        if run(unit, a, b, c) != run(mutant, a, b, c):
            found.add(name)
    return found


# By (compute capability, input type), the vectors that catch each mutant, and no others do. H counts half
# a block for the half width, a whole one for the double width.
MUTANTS = ("F-1", "F+1", "half width", "double width", "RNE", "RD")
CATCHES = {
    ("7.0", "fp16"): ("S1 S1n", "S2 H2/23", "H2/23", "H4/23", "C1 C1n", "C1n"),
    ("7.5", "fp16"): ("S2", "S2 H2/24 H4/24 W16", "H4/24", "H8/24", "S1 S1n C1 C1n", "S1n C1n"),
    ("8.0", "tf32"): ("S2", "S2 H2/24 W16", "S2 H2/24", "H4/24", "S1 S1n C1 C1n", "S1n C1n"),
    ("9.0", "fp16"): (
        "S2 W16",
        "S2 H2/25 H4/25 H8/25",
        "H8/25",
        "H16/25",
        "S1 S1n C1 C1n",
        "S1n C1n",
    ),
    ("9.0", "tf32"): ("S2 W16", "S2 H2/25 H4/25", "H4/25", "H8/25", "S1 S1n C1 C1n", "S1n C1n"),
    ("8.9", "e4m3"): ("F8", "H2/13 H4/13 H8/13", "H8/13", "H16/13", "C1e C1ne", "C1ne"),
    ("9.0", "e4m3"): ("F8", "H2/13 H4/13 H8/13 H16/13", "H16/13", "H32/13", "C1e C1ne", "C1ne"),
    ("10.0", "e4m3"): (
        "S2e",
        "S2e H2/25 H4/25 H8/25 H16/25",
        "H16/25",
        "H32/25",
        "S1e S1ne",
        "S1ne",
    ),
}
# Whose arithmetic is the same but for the width or the input's type.
LIKE = {
    ("8.0", "fp16"): ("7.5", "fp16"),
    ("8.0", "bf16"): ("7.5", "fp16"),
    ("8.6", "fp16"): ("7.5", "fp16"),
    ("8.9", "bf16"): ("7.5", "fp16"),
    ("9.0", "bf16"): ("9.0", "fp16"),
    ("10.0", "fp16"): ("9.0", "fp16"),
    ("12.0", "tf32"): ("9.0", "tf32"),
    ("12.0", "e4m3"): ("10.0", "e4m3"),
}


@pytest.mark.parametrize(("capability", "input_type"), [*CATCHES, *LIKE])
def test_every_mutant_is_caught_and_by_these_vectors(capability: str, input_type: str) -> None:
    unit = unit_of(capability, input_type, "fp32")
    assert unit is not None
    key = capability, input_type
    row = zip(MUTANTS, CATCHES[LIKE.get(key, key)], strict=True)
    expected = {name: set(some.split()) for name, some in row}
    assert {name: caught(unit, mutant) for name, mutant in mutants(unit).items()} == expected


@pytest.mark.parametrize("capability", ["7.0", "8.0", "9.0"])
def test_s1_alone_does_not_catch_them(capability: str) -> None:
    """It says Tensor Core, and neither how wide a block is nor, on V100, how the result is rounded."""
    unit = unit_of(capability, "fp16", "fp32")
    assert unit is not None
    missed = {name for name, mutant in mutants(unit).items() if "S1" not in caught(unit, mutant)}
    assert {"half width", "double width", "RD", "F+1"} <= missed
    assert ("RNE" in missed) is (capability == "7.0")


@pytest.mark.parametrize(
    ("input_type", "accumulator"),
    [("fp16", "fp32"), ("fp16", "fp16"), ("bf16", "fp32"), ("bf16", "bf16")],
)
def test_chains_differ_from_every_unit_in_s1_and_c1(input_type: str, accumulator: str) -> None:
    chain = rival(input_type, "fp32", accumulator)
    for capability in ("7.0", "8.0", "9.0", "10.0"):
        unit = unit_of(capability, input_type, "fp32")
        if unit is None:
            continue
        for name in ("S1", "S1n", "C1", "C1n"):
            right = run(unit, *words(vector(name), input_type))
            assert right not in outputs(chain, dot(name, input_type, "fp32")), (capability, name)


def test_fp8_chains_differ_from_every_unit_in_s1e() -> None:
    for accumulator in ("fp32", "fp16"):
        chain = outputs(rival("e4m3", "fp32", accumulator), dot("S1e", "e4m3", "fp32"))
        for capability in ("8.9", "9.0", "10.0"):
            unit = unit_of(capability, "e4m3", "fp32")
            assert unit and run(unit, *words(vector("S1e"), "e4m3")) not in chain


# The same with FP16 accumulators, which round results to nearest.
HALF_MUTANTS = ("F-1", "F+1", "half width", "double width", "RZ", "RD")
HALF_CATCHES = {
    "7.0": ("H4/24h H8/25h", "S1h S2h H2/23h H4/25h", "A16 H2/23h", "H4/23h H4/24h", "A16", "A16"),
    "8.0": (
        "S1h S2h H2/23h H4/23h",
        "S2h H2/24h H4/24h",
        "H4/24h H4/25h",
        "H8/24h H8/25h",
        "S1h A16",
        "S1h A16",
    ),
    "9.0": (
        "S2h H2/24h H4/24h H8/24h",
        "S2h H2/25h H4/25h H8/25h",
        "H8/25h",
        "H16/25h",
        "S1h A16",
        "S1h A16",
    ),
}
HALF_LIKE = {"7.5": "8.0", "8.6": "8.0", "8.9": "8.0", "10.0": "9.0", "12.0": "9.0"}


@pytest.mark.parametrize("capability", [*HALF_CATCHES, *HALF_LIKE])
def test_what_catches_each_mutant_of_an_fp16_accumulator(capability: str) -> None:
    unit = unit_of(capability, "fp16", "fp16")
    assert unit is not None
    wrong = mutants(unit) | {"RZ": unit._replace(output_rounding="RZ")}
    del wrong["RNE"]  # is what it does
    names = [*SETS["fp16", "fp16"], "S2h"]
    names += [one.name for one in width_vectors("fp16", "fp16")]

    def bits(one: Unit, name: str) -> int:
        return run(one, *words(vector(name), "fp16"))

    caught = {
        how: {name for name in names if bits(mutant, name) != bits(unit, name)}
        for how, mutant in wrong.items()
    }
    expected = dict(
        zip(HALF_MUTANTS, HALF_CATCHES[HALF_LIKE.get(capability, capability)], strict=True)
    )
    assert caught == {how: set(some.split()) for how, some in expected.items()}


def test_an_fp16_accumulator_that_truncates_is_caught() -> None:
    """Units round FP16 results to nearest; and each block at once, or A16s would not differ from A16."""
    unit = unit_of("9.0", "fp16", "fp16")
    assert unit is not None
    for change, names in (
        ({"output_rounding": "RZ"}, {"S1h", "A16"}),
        ({"fraction_bits": 23}, {"S1h"}),
        ({"block": 64}, {"A16s"}),
    ):
        mutant = unit._replace(**change)
        found = {
            name
            for name in SETS["fp16", "fp16"]
            if run(unit, *words(vector(name), "fp16")) != run(mutant, *words(vector(name), "fp16"))
        }
        assert found == names, change
