"""Level 1 in processes of its own, on libraries that compute real products and need no GPU."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import probing
import pytest
from probing import why
from world import folder as loose

from envcheck.collector.runtime import process
from envcheck.facts.base import Unavailable
from envcheck.facts.micro_kernels import LevelRun, ModeRun, Rate

THIS = sys.version_info[1]
pynvml = pytest.importorskip("pynvml")

ALL = ["fp32", "tf32", "fp16", "bf16", "int8", "fp8"]
PARAMS = {
    "modes": ALL,
    "skip": [],
    "seconds": 60,
    "pynvml": pynvml.__file__,
    "pci_address": "0000:83:00.0",
    "uuid": "GPU-abababab-abab-abab-abab-abababababab",
    "libraries": {"libcublas": None, "libcublasLt": None, "libcupti": None},
    "names": True,
    "framework": "",
    "settings": [],
}
CHAIN = {"S1": "3F800002", "S1n": "BF800002", "C1": "40000002", "C1n": "C0000002"}
TENSOR = {"S1": "3F800001", "S1n": "BF800001", "C1": "40000001", "C1n": "C0000001"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = loose.put(tmp_path_factory.mktemp("gpu"), loose.COMPUTING)
    return loose.describe(loose.h200(), made)


class Ended:
    """What became of one process, and the LevelRun that its parent would make of its records."""

    def __init__(self, code: int, stdout: bytes, stderr: bytes) -> None:
        self.code = code
        self.stderr = stderr
        self.reported = probing.Reported(stdout)
        values = {**self.reported.run, "modes": list(self.reported.modes.values())}
        self.run = msgspec.convert({"level": "L1", "outcome": "ok", **values}, LevelRun)
        self.modes: dict[str, ModeRun] = {mode.mode: mode for mode in self.run.modes}

    def mode(self, name: str) -> ModeRun:
        return self.modes[name]

    def outcomes(self) -> dict[str, str]:
        return {name: mode.outcome for name, mode in self.modes.items()}


def environ(folder: Path, variables: dict[str, str]) -> dict[str, str]:
    taken = ("CUDA", "CUBLAS", "NVIDIA", "LD_", "SHIM_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(taken)}
    description = variables.pop("SHIM_MACHINE", str(folder))
    return {**clean, **loose.variables(folder, description), "SHIM_SLOW": "20", **variables}


def run(
    folder: Path, params: dict[str, Any] | None = None, minor: int = THIS, **shim: str
) -> Ended:
    python = probing.interpreter(minor)
    argv = probing.level([python], "level1", {**PARAMS, **(params or {})})
    ended = process.run(argv, 120, env=environ(folder, shim))
    assert ended.outcome == "exited", ended.tail(20)
    return Ended(ended.code, ended.stdout, ended.stderr)


def bits(mode: ModeRun, output: str = "fp32") -> dict[str, str]:
    """Each vector's one output."""
    found = {}
    for signature in mode.signatures:
        if signature.output_type == output:
            assert signature.distinct == len(signature.outputs) == 1, signature
            assert signature.outputs[0].count >= 4096
            found[signature.vector] = signature.outputs[0].bits
    return found


def subset(small: dict[str, str], large: dict[str, str]) -> bool:
    return small.items() <= large.items()


def value(fact: Any) -> Any:
    assert not isinstance(fact, Unavailable), fact
    return fact


def timed(mode: ModeRun) -> Rate:
    assert mode.rate is not None, mode.rate_reason
    return mode.rate


@pytest.mark.parametrize("minor", [THIS, 6])
def test_a_healthy_gpu(folder: Path, minor: int) -> None:
    ended = run(folder, minor=minor)
    assert (ended.code, ended.reported.done) == (0, True), ended.stderr
    assert ended.outcomes() == dict.fromkeys(ALL, "ok")
    result = ended.run
    assert (result.name, result.compute_capability, result.multiprocessors) == (
        "NVIDIA H200",
        "9.0",
        132,
    )
    assert result.library == str(folder.resolve() / "libcublas.so.12")
    assert (result.library_version, result.variables) == ("12.9.1", {})

    assert subset(CHAIN, bits(ended.mode("fp32")))
    for name in ("tf32", "fp16", "bf16"):
        assert subset({**TENSOR, "S2": "33C00000"}, bits(ended.mode(name))), name
    exact = {"T1": "3F801800", "T2": "3F801000", "T3": "3F802000"}
    assert subset(exact, bits(ended.mode("fp32")))
    assert subset(dict.fromkeys(exact, "3F802000"), bits(ended.mode("tf32")))
    assert bits(ended.mode("fp16"), "fp16") == {"S1h": "3C00", "A16": "3C01", "A16s": "3C01"}
    assert bits(ended.mode("bf16"), "bf16")["S1b"] == "3F80"
    assert bits(ended.mode("int8"), "int32") == {"I8": f"{-127 * 128 + 128 * 127 + 77 * 55:08X}"}
    assert bits(ended.mode("fp8"))["F8"] == "3F800400"

    for name in ALL:
        rate = timed(ended.mode(name))
        assert (rate.timer, rate.shape, rate.multiprocessors) == ("cuda-events", [512] * 3, 132)
        assert ended.mode(name).signatures[0].length == rate.shape[2]  # the same product
        assert value(rate.tflops) == pytest.approx(0.05 if name == "fp32" else 0.8, rel=1e-3)
        if name != "fp32":
            assert value(rate.fp32_tflops) == pytest.approx(0.05, rel=1e-3)
    # Of the six at least one is sampled, however busy this machine is with other things.
    seen = [
        r for r in (timed(m) for m in ended.run.modes) if not isinstance(r.clock_mhz, Unavailable)
    ]
    assert {(r.clock_mhz, r.clock_source, r.power_w) for r in seen} == {(1755.0, "NVML", 698.7)}
    assert all(r.clock_event_reasons == ["sw_power_cap"] and r.temperature_c == 61 for r in seen)
    names = {name: ended.mode(name).hardware.kernel_names for name in ALL}
    assert names["fp32"] == ["ampere_sgemm_shim"]
    assert names["fp16"] == ["sm90_xmma_gemm_f16f32_f16f32_f32_shim"]
    assert names["fp8"] == ["nvjet_qqss_shim"]
    assert ended.mode("tf32").call.startswith(
        "cublasGemmEx TN CUDA_R_32F x CUDA_R_32F -> CUDA_R_32F"
    )
    # what is timed is what a framework asks for
    assert ended.mode("fp16").call == (
        "cublasGemmEx TN CUDA_R_16F x CUDA_R_16F -> CUDA_R_16F, CUBLAS_COMPUTE_32F"
    )


def test_older_cublas(folder: Path) -> None:
    ended = run(folder, SHIM_CUBLAS="100202")
    missing = {mode for mode, outcome in ended.outcomes().items() if outcome == "not-supported"}
    assert missing == {"tf32", "bf16", "fp8"}
    assert ended.mode("tf32").reason == "cuBLAS 10.2.2 has no TF32"
    assert subset(TENSOR, bits(ended.mode("fp16")))
    assert subset(CHAIN, bits(ended.mode("fp32")))
    ended = run(folder, {"modes": ["fp8"]}, SHIM_CUBLAS="110900")
    assert ended.mode("fp8").reason == "cuBLAS 11.9.0 has no FP8, which came with 11.11"
    ended = run(folder, {"modes": ["fp8"]}, SHIM_NO_HEURISTIC="1")
    assert ended.outcomes() == {"fp8": "not-supported"}
    assert ended.mode("fp8").reason.startswith("cublasLtMatmulAlgoGetHeuristic: ")


def test_libraries_by_path(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "driver").mkdir()
    (tmp_path / "wheel").mkdir()
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        shutil.copy(folder / name, tmp_path / "driver")
    for name in ("libcublas.so.12", "libcublasLt.so.12", "libcupti.so.12"):
        shutil.copy(folder / name, tmp_path / "wheel")
    described = str(folder)
    paths: dict[str, str | None] = {
        name: str(tmp_path / f"wheel/{name}.so.12") for name in PARAMS["libraries"]
    }
    ended = run(tmp_path / "driver", {"modes": ["fp8"], "libraries": paths}, SHIM_MACHINE=described)
    assert ended.run.library == paths["libcublas"]
    assert ended.mode("fp8").hardware.kernel_names == ["nvjet_qqss_shim"]
    beside = run(
        tmp_path / "driver",
        {"modes": ["fp8"], "libraries": {**paths, "libcublasLt": None}},
        SHIM_MACHINE=described,
    )
    assert beside.outcomes() == {"fp8": "ok"}

    paths["libcublas"] = str(tmp_path / "none/libcublas.so.12")
    ended = run(tmp_path / "driver", {"libraries": paths}, SHIM_MACHINE=described)
    assert ended.outcomes() == dict.fromkeys(ALL, "not-supported")
    assert "there is no cuBLAS: " in ended.mode("fp32").reason
    assert why(ended.run.library) == (
        "absent",
        ended.mode("fp32").reason[len("there is no cuBLAS: ") :],
    )
    assert ended.reported.done


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [("35", "no-permission", "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"),
     ("39", "not-supported", "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)"),
     ("77", "error", "CUptiResult (77)")],
)  # fmt: skip
def test_cupti_refuses(folder: Path, code: str, reason: str, words: str) -> None:
    ended = run(folder, {"modes": ["fp32"]}, SHIM_CUPTI=code)
    assert ended.outcomes() == {"fp32": "ok"}
    assert why(ended.mode("fp32").hardware.kernel_names) == (
        reason,
        f"cuptiActivityEnable: {words}",
    )
