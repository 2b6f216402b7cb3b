"""The hardware's line: opcodes, kernel names, counters, and what happens where they disagree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_runs import MACHINES, MODES, level_run

from envcheck.data import table
from envcheck.facts.base import Unavailable
from envcheck.facts.micro_kernels import Hardware, Level, Mode, ModeRun
from envcheck.tensorcores.hardware import by_names, by_opcodes, hardware
from envcheck.tensorcores.mode_verdict import Line

A100 = MACHINES["A100"]
TENSOR = "ampere_s16816gemm_fp16_128x128_ldg8_stages_64x3_nn"
SIMT = "ampere_sgemm_128x128_nn"
HELPER = "_ZN8cublasLt19splitKreduce_kernelILi32EEEvv"


def line(level: Level = "L1", mode: Mode = "fp16", busy: bool = False, **facts: Any) -> Line:
    run = level_run(A100, level, modes=[], busy=busy)
    return hardware(run, ModeRun(mode=mode, outcome="ok", hardware=Hardware(**facts)))


@pytest.mark.parametrize(
    ("mode", "counts", "says", "words"),
    [
        ("fp32", {"FFMA": 64, "HFMA2.MMA": 300}, "not tensor", "64 FFMA"),
        ("fp32", {"FFMA": 64, "HMMA": 65}, "tensor", "65 HMMA"),
        ("fp16", {"HFMA2.MMA": 64, "HFMA2": 64}, "not tensor", "64 HFMA2"),
        ("fp16", {"HFMA2.MMA": 64}, None, "no product's opcode"),
        ("fp16", {"FFMA": 1024}, "not tensor", "1024 FFMA"),  # m8n8k4 on compute capability 8.0
        ("fp16", {"HMMA": 4, "FFMA": 64}, None, "mostly others"),
        ("fp16", {"HMMA": 0, "FFMA": 64}, "not tensor", "64 FFMA"),
        ("tf32", {"HGMMA": 8}, "tensor", "8 HGMMA"),
        ("int8", {"IDP": 64}, "not tensor", "64 IDP"),
        ("int8", {"IMMA": 64, "FFMA": 99}, "tensor", "64 IMMA"),
        ("int8", {"DMMA": 64}, None, "emulated"),
        ("fp8", {"QMMA": 64}, "tensor", "64 QMMA"),
        ("fp8", {"UTCQMMA": 4}, "tensor", "4 UTCQMMA"),
        ("fp8", {"F2FP": 64, "HMMA": 64}, None, "emulated"),
        ("fp16", {"XYZMMA": 64}, None, "no product's opcode"),
    ],
)
def test_opcodes(mode: Mode, counts: dict[str, int], says: str | None, words: str) -> None:
    found = by_opcodes(tuple(counts.items()), mode)
    assert found.says == says and words in found.text, found


def test_hfma2_mma_is_no_tensor_opcode() -> None:
    rows = {row["opcode"]: row for row in table("opcodes")}
    assert rows["HFMA2.MMA"]["unit"] == "neither"
    assert {name for name, row in rows.items() if row["unit"] == "tensor"} == {
        "HMMA", "IMMA", "DMMA", "QMMA",
        "HGMMA", "IGMMA", "QGMMA",
        "UTCHMMA", "UTCIMMA", "UTCQMMA",
    }  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from(["FFMA", "HFMA2.MMA", "HFMA2", "IDP", "F2FP", "X"]), st.integers(0, 99)
    )
)
@settings(max_examples=30, deadline=None)
def test_no_count_without_a_tensor_opcode_says_tensor(counts: dict[str, int]) -> None:
    assert all(by_opcodes(tuple(counts.items()), mode).says != "tensor" for mode in MODES)


@pytest.mark.parametrize(
    ("names", "says", "words"),
    [
        ([TENSOR], "tensor", "(tensor)"),
        ([SIMT, HELPER], "not tensor", "(simt)"),
        ([TENSOR, SIMT], None, "(simt)"),
        ([TENSOR, "triton_gemm_dot"], None, "(unknown)"),
        ([SIMT, "triton_gemm_dot"], None, "(unknown)"),
        ([HELPER], None, "only auxiliary"),
        ([TENSOR, TENSOR + "x", TENSOR + "y"], "tensor", "and 1 more"),
        (["tensorop_" + "x" * 99], "tensor", "…"),
    ],
)
def test_kernel_names(names: list[str], says: str | None, words: str) -> None:
    found = by_names(names)
    assert found.says == says and words in found.text, found


def test_two_multiply_adds_in_one_are_no_tensor_core() -> None:
    """ptxas has FFMA2 from sm_100 on."""
    assert by_opcodes((("FFMA2", 64),), "fp32").says == "not tensor"


def test_without_a_source_it_cannot_tell_and_says_why() -> None:
    refused = Unavailable(unavailable="no-permission", detail="CUPTI error 35\nmore")
    result = line(kernel_names=refused)
    assert result.says == "cannot tell" and result.text == "not seen: CUPTI error 35"
    assert line().text == "not seen"
    assert line("L0", opcodes_reason="damaged").text == "not seen: damaged"
