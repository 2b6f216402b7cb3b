"""All of level 0 in a process of its own, against a libcuda that needs no GPU."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import kernel_shims
import msgspec
import probing
import pytest
import tensor_runs
from build_cubin import cubin
from probing import Reported

from envcheck.collector.kernels import MODES, level0_bits, ptx
from envcheck.collector.kernels.ptx import Instruction
from envcheck.collector.kernels.vectors import SIZES
from envcheck.collector.runtime import process
from envcheck.facts.base import Unavailable
from envcheck.facts.micro_kernels import LevelRun, ModeRun
from envcheck.tensorcores.chains import chain, integer_dot
from envcheck.tensorcores.formats import decode, product
from envcheck.tensorcores.judge import judge
from envcheck.tensorcores.model import multiply_add

THIS = sys.version_info[1]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("libcuda")
    return probing.compile_library(kernel_shims.CUDA, folder, "libcuda.so.1")


def level0(
    library: Path, minor: int = THIS, seconds: float = 10.0, modes: Any = MODES, deadline: float = 60,
    skip: Any = (), **environment: str,
) -> tuple[process.Result, Reported]:  # fmt: skip
    params = {
        "modes": list(modes),
        "skip": list(skip),
        "seconds": seconds,
        "pynvml": None,
        "pci_address": None,
        "uuid": None,
        "libraries": {},
        "names": False,
        "framework": "",
        "settings": [],
    }
    argv = probing.level([probing.interpreter(minor), "-I", "-S"], "level0", params)
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("CUDA", "NVIDIA", "LD_", "SHIM"))
    }
    result = process.run(
        argv, deadline, env={**clean, "LD_LIBRARY_PATH": str(library.parent), **environment}
    )
    return result, probing.Reported(result.stdout)


def modes_of(heard: Reported) -> dict[str, ModeRun]:
    """What was told, as the Snapshot takes it."""
    return {name: msgspec.convert(told, ModeRun) for name, told in heard.modes.items()}


@pytest.mark.parametrize("minor", [THIS, 6])
def test_a_healthy_gpu(library: Path, tmp_path: Path, minor: int) -> None:
    words = tmp_path / "words"
    words.mkdir()
    chosen = [one for mode in MODES for one in ptx.products(mode, (8, 0))[:1]]
    for number, instruction in enumerate(i for one in chosen for i in one.instructions):
        _a, _b, c = level0_bits.operands(instruction, level0_bits.vectors(instruction))
        (words / str(number + 1)).write_bytes(b"\x01\0\x80\x3f" * (len(c) // 4))
    cubins = tmp_path / "cubins"
    cubins.mkdir()
    (cubins / "3").write_bytes(cubin({"rate": [0x23C, 0x435, 0x918], "other": [0x23C]}))
    result, heard = level0(
        library, minor, SHIM_WORDS=str(words), SHIM_CUBINS=str(cubins), SHIM_SMS="6"
    )
    assert result.ok and heard.done and b"released 10" in result.stderr, result.tail(20)
    run = msgspec.convert({"level": "L0", "outcome": "ok", **heard.run}, LevelRun)
    assert (run.name, run.compute_capability, run.multiprocessors) == ("NVIDIA shim", "8.0", 6)
    told = modes_of(heard)
    assert list(told) == list(MODES)
    assert [m.outcome for m in told.values()] == ["ok"] * 5 + ["not-supported"]
    half = told["fp16"]
    assert half.call == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    assert {s.output_type for s in half.signatures} == {"fp32", "fp16"}
    one = half.signatures[0]
    assert (one.vector, one.outputs[0].bits, one.outputs[0].count) == ("S1", "3F800001", 128)
    assert (one.distinct, one.length, one.slots) == (1, 64, [0, 1])
    wide = next(s for s in half.signatures if s.vector == "W16")
    assert wide.accumulator == "3F800000" and len(wide.a) == 16
    assert half.hardware.opcodes == {"HMMA": 2, "HFMA2.MMA": 1}
    rate = half.rate
    assert rate is not None
    # 64 products of 2,048 in an iteration, of eight warps, in 512 ticks of the shim's 1,000 MHz
    assert rate.fma_per_clock_per_sm == pytest.approx(64 * 2048 * 8 / 512, rel=1e-3)
    assert rate.multiprocessors == 6 and rate.runs == 3 and rate.spread == pytest.approx(1)
    assert rate.clock_mhz == pytest.approx(1000, rel=1e-3)
    assert rate.tflops == pytest.approx(2e-12 * 2048 * 6 * 1e9, rel=1e-3)
    assert rate.fp32_tflops == told["fp32"].rate.tflops  # type: ignore[union-attr]
    assert 0.004 < rate.seconds < 0.02  # type: ignore[operator]
    assert isinstance(told["fp32"].rate.fp32_tflops, Unavailable)  # type: ignore[union-attr]
    assert "8.9" in told["fp8"].reason


@pytest.mark.parametrize("way", ["SHIM_TARGET", "SHIM_LOADS", "SHIM_NEITHER"])
def test_hopper_s_own_instructions_come_by_another_way(library: Path, way: str) -> None:
    value = {"SHIM_TARGET": str(0x1005A)}.get(way, "1")
    _result, heard = level0(
        library, modes=["fp8"], SHIM_CAPABILITY="90", SHIM_REFUSE="sm_90a", **{way: value}
    )
    told = modes_of(heard)["fp8"]
    if way == "SHIM_NEITHER":
        assert told.outcome == "not-supported" and "PTX 8.0: cuLinkAddData_v2" in told.reason
    else:
        assert told.outcome == "ok" and told.call.startswith("wgmma.mma_async") and told.rate


@pytest.mark.parametrize("function", ["cuLinkCreate_v2", "cuLinkComplete"])
@pytest.mark.parametrize("code", [1, 999])
def test_a_linker_that_fails_costs_the_opcodes_alone(
    library: Path, function: str, code: int
) -> None:
    _result, heard = level0(library, modes=["fp32", "fp16"], SHIM_FAIL=f"{function}:{code}:2")
    told = modes_of(heard)
    assert [m.outcome for m in told.values()] == ["ok", "ok"]
    assert told["fp16"].signatures and told["fp16"].rate
    name = {1: "INVALID_VALUE", 999: "UNKNOWN"}[code]
    assert told["fp16"].hardware.opcodes_reason == (
        f"the driver's loader took the kernels, its linker did not ({function}: CUDA_ERROR_{name})"
    )


# -- to the verdict


def dot(a: bytes, b: bytes, c: int, mode: str, instruction: Instruction, tensor: bool) -> int:
    """What a Tensor Core of an A100, or a chain of FP32 FMAs, makes of a row and a column."""
    kind, size = instruction.input_type, SIZES[instruction.input_type]
    x, y = (
        [int.from_bytes(raw[at : at + size], "little") for at in range(0, len(raw), size)]
        for raw in (a, b)
    )
    if kind == "int8":
        return integer_dot(x, y, c)
    if tensor:
        words = "tf32" if mode == "tf32" else kind
        return multiply_add(x, y, c, words, instruction.output_type, "8.0")
    products = [product(decode(p, kind), decode(q, kind)) for p, q in zip(x, y, strict=True)]
    return chain(products, c, instruction.output_type)


def results(mode: str, instruction: Instruction, tensor: bool) -> bytes:
    """D of all tiles: each row's product with the first column, which all columns equal."""
    m, n, _k = instruction.shape
    vectors = level0_bits.vectors(instruction)
    a, b, _c = level0_bits.operands(instruction, vectors)
    width = level0_bits.LENGTH * SIZES[instruction.input_type]
    made = b""
    for number, (_vector, c) in enumerate(vectors):
        column = b[number * n * width :][:width]
        known: dict[bytes, bytes] = {}
        for row in range(number * m, (number + 1) * m):
            line = a[row * width : (row + 1) * width]
            if line not in known:
                word = dot(line, column, c, mode, instruction, tensor)
                known[line] = word.to_bytes(SIZES[instruction.output_type], "little") * n
            made += known[line]
    return made


def judged(library: Path, folder: Path, truth: bool, ticks: int) -> dict[str, str]:
    """The verdict on each mode of a simulated A100 whose tensor modes tell the truth, or run as FMAs."""
    words, cubins = folder / "words", folder / "cubins"
    words.mkdir()
    cubins.mkdir()
    launches = 0
    kinds = {"fp32": 0x223, "int8": 0x237}
    for number, mode in enumerate(MODES[:5]):
        (cubins / str(number + 1)).write_bytes(cubin({"rate": [kinds.get(mode, 0x23C)] * 64}))
        for instruction in ptx.products(mode, (8, 0))[0].instructions:
            launches += 1
            tensor = truth and mode != "fp32"
            (words / str(launches)).write_bytes(results(mode, instruction, tensor))
    name = "NVIDIA A100-SXM4-40GB"
    _result, heard = level0(
        library,
        SHIM_NAME=name,
        SHIM_WORDS=str(words),
        SHIM_CUBINS=str(cubins),
        SHIM_TICKS=str(ticks),
    )
    modes = list(modes_of(heard).values())
    run = msgspec.convert({"level": "L0", "outcome": "ok", **heard.run, "modes": modes}, LevelRun)
    machine = tensor_runs.Machine(name, "8.0", 4, 1410.0, 1000.0)
    return {one.mode: one.verdict for one in judge(tensor_runs.snapshot(machine, [run]))}


def test_a_simulated_a100_is_proven_and_its_control_is_not(library: Path, tmp_path: Path) -> None:
    assert judged(library, tmp_path, truth=True, ticks=1100) == {
        "fp32": "not engaged",
        "tf32": "proven",
        "fp16": "proven",
        "bf16": "proven",
        "int8": "proven",
        "fp8": "not applicable",
    }
