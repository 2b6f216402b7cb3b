"""L2 mode by mode: which switch is where, in which order it is run, and what becomes of every failure."""

from __future__ import annotations

import os

import pytest
from fake_frameworks import FakeAdapter
from level2_parts import isolate, measured

from envcheck.collector.kernels.adapter import explain
from envcheck.collector.kernels.failures import NotSupported


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(monkeypatch)


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
