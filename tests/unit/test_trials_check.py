"""What a framework's trials on the GPU say: failures with their cause, and doubts that are no verdict."""

from __future__ import annotations

from typing import Any

import pytest
from targets import ABSENT, good_snapshot, judge, system_library, tensorflow

from envcheck.facts.target import Trial
from envcheck.findings.model import CheckResult

NAMES = ("xla", "conv2d float32", "conv2d float16", "conv3d float32", "conv3d float16")


def made(**outcomes: tuple[str, str]) -> list[Trial]:
    """All well, but for those given: xla=("failed", words)."""
    bad = {name.replace("_", " "): text for name, text in outcomes.items()}
    return [
        Trial(name=name, outcome=bad.get(name, ("ok", ""))[0], error=bad.get(name, ("ok", ""))[1])  # type: ignore[arg-type]
        for name in NAMES
    ]


def on(code: str = "FRM-010", **facts: Any) -> CheckResult:
    return judge(good_snapshot(tensorflow=tensorflow(**facts)), code, "framework")


def full_text(result: CheckResult) -> str:
    (finding,) = result.findings
    assert finding.remedy is not None
    return "\n".join([finding.message, finding.remedy.text, *finding.remedy.commands])


def test_healthy_and_missing() -> None:
    assert on(trials=made()).outcome == "pass"
    assert on().outcome == "skipped"
    assert on(trials=ABSENT).outcome == "skipped"
    assert on(trials=[]).outcome == "skipped"
    assert on(trials=[Trial(name="xla", outcome="not-supported")]).outcome == "skipped"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("InternalError: libdevice not found at ./libdevice.10.bc", "ptxas or libdevice"),
        ("XlaRuntimeError: Unsupported .version 8.4; current version is '8.2'", "PTX up to 8.2"),
        ("InternalError: 'cuLaunchKernel' failed with 'CUDA_ERROR_INVALID_HANDLE'", "no code that runs"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "different versions"),
        (
            "RuntimeError: Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: cannot"
            " open shared object file",
            "ln -s",
        ),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm(`",
         "env -u LD_LIBRARY_PATH"),
        ("UnknownError: Failed to get convolution algorithm. This is", "does not start"),
        ("SomethingError: never seen before", "never seen before"),
    ],
)  # fmt: skip
def test_a_failure_is_told_with_its_cause(words: str, says: str) -> None:
    result = on(trials=made(conv2d_float32=("failed", words)))
    assert result.outcome == "fail" and says in full_text(result)
    assert "2D convolutions" in full_text(result)


def test_the_cudnn_that_it_was_built_with_stands_in_its_log() -> None:
    log = "E cuda_dnn.cc:319] Loaded runtime CuDNN library: 8.5.0 but source was compiled with: 8.6.0.  CuDNN"
    result = on(
        version="2.12.1",
        built_cuda="11.8",
        built_cudnn="8",
        trials=made(
            conv2d_float32=("failed", "UnknownError: Failed to get convolution algorithm.")
        ),
        trial_log=[log],
        libraries=[system_library("libcudnn", "libcudnn.so.8", "8.5.0", how="framework")],
    )
    assert "built with 8.6.0" in full_text(result)
    assert "nvidia-cudnn-cu11>=8.6,<9" in full_text(result) and "LD_LIBRARY_PATH" in full_text(
        result
    )


def test_no_memory_and_no_time_are_no_verdict() -> None:
    full = on(trials=made(conv2d_float32=("failed", "OutOfMemoryError: CUDA out of memory")))
    late = on(trials=made(conv2d_float32=("timeout", "gave no answer within 60 s")))
    words = "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"
    exclusive = on(trials=made(conv2d_float32=("failed", words)))
    for result in (full, late, exclusive):
        assert result.findings == [] and result.unjudged[0].outcome == "could-not-run"


def test_what_ran_is_proof() -> None:
    """Neither a ptxas nor code for the GPU is missed where XLA compiled and a convolution ran."""
    assert on("FRM-008", compiler_tools=[], trials=made()).outcome == "pass"
    assert on("FRM-008", compiler_tools=[], trials=made()).outcome == "pass"
    newer: dict[str, Any] = {"built_cuda": "12.4", "built_capabilities": ["sm_80", "compute_80"]}
    assert on("FRM-004", **newer).outcome == "warn"
    assert on("FRM-004", trials=made(), **newer).outcome == "pass"


def test_a_refusal_in_a_trial_is_a_ptxas_that_is_too_old() -> None:
    words = "ptxas fatal: Unsupported .version 8.4; current version is '8.2'"
    assert on("FRM-008").outcome == "pass"
    assert on("FRM-008", trials=made(xla=("failed", words))).outcome == "fail"
