"""Outputs of real Tensor Cores against the model, from the facts beside the repository.

Source: github.com/north-numerical-computing/MATLAB-tensor-core, model_validation, BSD-2-Clause.
"""

from __future__ import annotations

import csv
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from envcheck.tensorcores.formats import convert, decode
from envcheck.tensorcores.model import multiply_add

FOLDER = Path(__file__).resolve().parents[2] / "../shared/facts/hardware-vectors"
CAPABILITIES = {
    "V100": "7.0",
    "A100": "8.0",
    "A2": "8.6",
    "Ada": "8.9",
    "L40S": "8.9",
    "H100": "9.0",
    "H200": "9.0",
    "B200": "10.0",
}
TYPES = {"fp16": "fp16", "bf16": "bf16", "tf32": "tf32", "E4M3": "e4m3", "E5M2": "e5m2"}
# What the model claims of FP8: on B200 these rows are mma.sync's, which emulates it, and no rule is known of
# Hopper's FP16 results.
NOT_CLAIMED = {("B200", "E4M3"), ("B200", "E5M2")}
TO_HALF = {("Ada", "E4M3"), ("Ada", "E5M2")}

SETS = sorted(path.stem for path in FOLDER.glob("*_*.csv"))


@cache
def e4m3() -> dict[float, int]:
    """Every finite number of the type, and its word; zero is zero, whatever its sign."""
    numbers = {word: decode(word, "e4m3") for word in range(256)}
    return {n.significand * 2.0**n.scale: w for w, n in numbers.items() if n.kind == "finite"}


def words(cell: str, input_type: str) -> list[int]:
    fp32 = [int(word, 16) for word in cell.split()]
    if input_type == "tf32":
        return fp32
    if input_type == "e4m3":
        return [e4m3()[struct.unpack("<f", struct.pack("<I", word))[0]] for word in fp32]
    return [convert(word, "fp32", input_type) for word in fp32]


def rows(name: str) -> Iterator[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open(encoding="ascii", newline="") as file:
        yield from csv.DictReader(file)


@pytest.mark.parametrize("name", SETS or ["none"])
def test_the_model_gives_every_published_result_that_it_claims(name: str) -> None:
    if not SETS:
        pytest.skip("no facts beside the repository: hardware-vectors")
    gpu, _, kind = name.partition("_")
    input_type, capability = TYPES[kind], CAPABILITIES[gpu]
    if (gpu, kind) in NOT_CLAIMED:
        pytest.skip("mma.sync emulates FP8 on this chip, which the model does not claim")
    wgmma = gpu in ("H100", "H200") and kind in ("E4M3", "E5M2")  # with C = 0
    compared = 0
    for row in rows(name):
        a, b = words(row["a"], input_type), words(row["b"], input_type)
        c = 0 if wgmma else int(row["c"], 16)
        assert multiply_add(a, b, c, input_type, "fp32", capability) == int(row["d_fp32"], 16), row
        compared += 1
        if row.get("d_fp16") and (kind == "fp16" or (gpu, kind) in TO_HALF):
            half = convert(c, "fp32", "fp16")
            got = multiply_add(a, b, half, input_type, "fp16", capability)
            assert got == convert(int(row["d_fp16"], 16), "fp32", "fp16"), row
            compared += 1
    assert compared >= 100


def test_one_bit_more_and_real_results_are_missed() -> None:
    """The comparison can fail: an A100's sums are not those of a Hopper."""
    if not SETS:
        pytest.skip("no facts beside the repository: hardware-vectors")
    missed = 0
    for row in rows("A100_fp16"):
        a, b = words(row["a"], "fp16"), words(row["b"], "fp16")
        missed += multiply_add(a, b, int(row["c"], 16), "fp16", "fp32", "9.0") != int(
            row["d_fp32"], 16
        )
    assert missed > 10
