"""L2 as a process, and its sides of PyTorch, TensorFlow and JAX: plan, switches and failures."""

from __future__ import annotations

import os
import re
import struct
import sys
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import fake_frameworks as fake
import pytest
from fake_frameworks import FakeAdapter, Teller
from level2_parts import isolate, measured, params

from envcheck.collector.kernels import (
    framework_jax,
    framework_tensorflow,
    framework_torch,
    level2,
    level2_mode,
    matrices,
)
from envcheck.collector.kernels.adapter import explain
from envcheck.collector.kernels.failures import NotSupported
from envcheck.collector.kernels.vectors import SETS, VECTORS


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(monkeypatch)


# -- what is planned


def test_what_the_user_has_comes_before_any_switch_is_touched() -> None:
    assert [f"{m}/{s}" for m, s in level2.planned(params())] == [
        "fp32/default",
        "fp32/switch-off",
        "tf32/switch-on",
        "fp16/half",
        "bf16/half",
    ]


# -- the matrices


def floats(data: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(data) // 4}f", data)


def test_both_matrices_meet_in_the_vectors_dot_product() -> None:
    n, k = 128, 96
    vectors = [VECTORS[name] for name in SETS["fp32", "fp32"]]
    a = floats(matrices.left(vectors, "fp32", n, k))
    b = floats(level2_mode.right_rows(vectors, "fp32", k, n))
    for vector, band in zip(vectors, matrices.bands(n, len(vectors)), strict=True):
        exact = sum(Fraction(x) * Fraction(y) for x, y in zip(vector.a, vector.b, strict=True))
        for i in (band[0], band[len(band) // 2], band[-1]):
            row, column = a[i * k : (i + 1) * k], b[i::n]
            terms = [Fraction(x) * Fraction(y) for x, y in zip(row, column, strict=True)]
            assert sum(terms) == exact
            assert len([t for t in terms if t]) == len(vector.a)


# -- the process as a whole


def run(monkeypatch: pytest.MonkeyPatch, module: Any, **changed: Any) -> Teller:
    teller = Teller()
    given = params(**changed)
    monkeypatch.setitem(sys.modules, given["framework"], module)
    level2.run(given, teller)
    return teller


@pytest.mark.parametrize(
    ("settings", "kept"), [(["default", "half"], True), (["override", "control"], False)]
)
def test_the_control_runs_without_emulation(
    monkeypatch: pytest.MonkeyPatch, settings: list[str], kept: bool
) -> None:
    monkeypatch.setenv("CUBLAS_EMULATE_SINGLE_PRECISION", "1")
    run(monkeypatch, None, settings=settings)
    assert ("CUBLAS_EMULATE_SINGLE_PRECISION" in os.environ) is kept


def test_nothing_is_told_before_the_device_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, before = FakeAdapter(), []
    teller = Teller()
    adapter.absent = lambda: before.append(len(teller.reported))
    adapter.ping = lambda: before.append(len(teller.reported))
    monkeypatch.setitem(level2.SIDES, "torch", SimpleNamespace(adapter=lambda module: adapter))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="9.9"))
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    sizes = []
    monkeypatch.setattr(level2, "measure", lambda *given: sizes.append(given[-1]))
    level2.run(params(), teller)
    assert before == [0, 0]
    ((_, facts),) = teller.reported
    assert facts["framework_version"] == "9.9"
    assert facts["variables"] == {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}
    assert (facts["pci_address"], facts["uuid"]) == ("0000:01:00.0", "GPU-1")
    assert facts["memory_free_mib"]["detail"] == "OSError: no libcuda"
    assert sizes == [4096]
    assert os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"


# -- switches


def test_each_setting_finds_the_switch_where_it_belongs() -> None:
    adapter = FakeAdapter(tf32=True)
    calls = {key: mode["call"] for key, mode in measured(adapter).modes.items()}
    assert calls == {
        "fp32/default": "fake.matmul, fake.tf32 is True",
        "fp32/switch-off": "fake.matmul, fake.tf32 is False",
        "tf32/switch-on": "fake.matmul, fake.tf32 is True",
        "fp16/half": "fake.matmul, fake.tf32 is True",
        "bf16/half": "fake.matmul, fake.tf32 is True",
    }


def test_the_override_stands_above_a_switch_that_does_not_move() -> None:
    adapter = FakeAdapter(tf32=True)
    adapter.stubborn = True
    with pytest.raises(NotSupported, match=r"did not turn TF32 off .* fake\.tf32 is True"):
        adapter.switch("control")
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    adapter.switch("control")


# -- stages and their failures


def test_timing_alternates_with_fp32_and_is_told_in_full() -> None:
    adapter = FakeAdapter()
    result = measured(adapter, settings=["half"], modes=["fp16"])
    assert result.stages == [("fp16/half", "bits"), ("fp16/half", "rate")]
    rate = result.modes["fp16/half"]["rate"]
    timed = adapter.log[3:]  # after one of each to know how long they take, and a batch to warm up
    assert timed == ["7 fp32 switch-off False", "25 fp16 half False"] * rate["runs"]
    assert rate["runs"] == 9 == rate["clock_mhz"]  # a sample in each, none with FP32
    assert (rate["timer"], rate["shape"]) == ("host-clock", [64, 64, 64])
    assert rate["seconds"] == pytest.approx(1e-3) and rate["spread"] == pytest.approx(1.0)
    assert rate["tflops"] == pytest.approx(2 * 64**3 / 1e-3 / 1e12)
    assert rate["fp32_tflops"] == pytest.approx(rate["tflops"] / 4)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (MemoryError(), "out-of-memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), "out-of-memory"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying"), "out-of-memory"),
        (RuntimeError("OOM when allocating tensor with shape[8192,8192]"), "out-of-memory"),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling"), "out-of-memory"),
        (RuntimeError("\"addmm\" not implemented for 'Half'"), "not-supported"),
        (RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED when calling cublasGemmEx"), "not-supported"),
        (RuntimeError("Cannot assign a device for operation MatMul"), "not-supported"),
        (AttributeError("module 'x' has no attribute 'y'"), "not-supported"),
        (NotSupported("it has none"), "not-supported"),
        (RuntimeError("CUDA error: unspecified launch failure"), "error"),
    ],
)
def test_an_exception_is_an_outcome(error: Exception, outcome: str) -> None:
    found, reason = explain(error, "x.matmul")
    assert found == outcome
    assert reason == "it has none" if isinstance(error, NotSupported) else "x.matmul: " in reason


# -- no GPU


@pytest.mark.parametrize(
    ("adapter", "words"),
    [
        (framework_torch.adapter(fake.torch(cuda=None)), "PyTorch .*: it was built without CUDA"),
        (
            framework_torch.adapter(fake.torch(seen=False)),
            r"PyTorch .*: torch.cuda.is_available\(\) is False "
            r"\(Found no NVIDIA driver on your system\)",
        ),
        (framework_tensorflow.adapter(fake.tensorflow(gpus=0, cuda=False)),
         "TensorFlow .*: it was built without CUDA"),
        (framework_tensorflow.adapter(fake.tensorflow(gpus=0)),
         r"TensorFlow .*: tf.config.list_physical_devices\('GPU'\) is empty"),
        (framework_jax.adapter(fake.jax(RuntimeError("Unknown backend: 'gpu'\nrequested"))),
         r"JAX .*: jax.devices\('gpu'\): Unknown backend: 'gpu' requested"),
        (framework_jax.adapter(fake.jax(found=0)), r"JAX .*: jax.devices\('gpu'\) is empty"),
    ],
)  # fmt: skip
def test_no_gpu_is_said_in_one_line(adapter: Any, words: str) -> None:
    result = adapter.absent()
    assert "sees no GPU here" in result and "\n" not in result
    assert re.fullmatch(words, result)


# -- PyTorch


def test_torchs_switch_and_its_older_and_newer_ways() -> None:
    torch = fake.torch()
    adapter = framework_torch.adapter(torch)
    adapter.switch("switch-on")
    assert torch.backends.cuda.matmul.allow_tf32 is True
    adapter.switch("half")
    assert torch.backends.cuda.matmul.allow_tf32 is False

    precision = ["highest"]
    torch = fake.torch(
        get_float32_matmul_precision=lambda: precision[-1],
        set_float32_matmul_precision=precision.append,
    )
    del torch.backends.cuda.matmul
    adapter = framework_torch.adapter(torch)
    adapter.switch("switch-on")
    adapter.switch("switch-off")
    assert precision == ["highest", "high", "highest"]

    torch = fake.torch(cuda="10.1")
    del torch.backends.cuda.matmul
    adapter = framework_torch.adapter(torch)
    adapter.switch("switch-off")
    assert adapter.call("switch-off") == "torch.matmul"
    with pytest.raises(NotSupported, match=r"PyTorch 2\.4\.0 has no switch"):
        adapter.switch("switch-on")
