"""Convolutions: the reference, and what ACC-011 says of each outcome."""

from __future__ import annotations

from typing import Any

import pytest
from convolved import NAMES, convolution, judged, matches, one, run, trials
from kept import Kept
from msgspec.structs import replace

from envcheck.collector.systems import cudnn
from envcheck.collector.systems.shared.convolving import Shape, reference
from envcheck.facts.missing import Skip
from envcheck.findings.model import Finding, Passed, Unjudged

SMALL = Shape(2, 7, 4, 8, 5, 3, 2)


# The reference


def test_reference_is_the_definition_in_one_dimension() -> None:
    """Two places of a filter of two over an image of four, by hand; the gradients likewise."""
    shape = Shape(1, 1, 1, 1, 4, 2, 2)
    y, dx, dw = reference.right(shape, [1, 2, 3, 4], [10, 1], [5, 7])
    assert y == [1 * 10 + 2 * 1, 3 * 10 + 4 * 1]
    assert dx == [5 * 10, 5 * 1, 7 * 10, 7 * 1]
    assert dw == [5 * 1 + 7 * 3, 5 * 2 + 7 * 4]


def test_reference_sums_over_channels_and_the_batch() -> None:
    shape = Shape(2, 2, 2, 2, 1, 1, 1)
    y, dx, dw = reference.right(shape, [1, 2, 3, 4], [10, 20, 30, 40], [1, 2, 3, 4])
    assert y == [1 * 10 + 2 * 20, 1 * 30 + 2 * 40, 3 * 10 + 4 * 20, 3 * 30 + 4 * 40]
    assert dx == [1 * 10 + 2 * 30, 1 * 20 + 2 * 40, 3 * 10 + 4 * 30, 3 * 20 + 4 * 40]
    assert dw == [1 * 1 + 3 * 3, 1 * 2 + 3 * 4, 2 * 1 + 4 * 3, 2 * 2 + 4 * 4]


@pytest.mark.parametrize("shape", [reference.FLAT, reference.SOLID])
def test_every_sum_on_the_way_is_exact_in_each_type(shape: Shape) -> None:
    """FP16 holds integers up to 2048, BF16 up to 256: partial sums in FP16, and results in BF16."""
    numbers = reference.integers(shape)
    assert shape.stride == 2, "Winograd and Fourier transforms are not for it"
    magnitudes = reference.right(shape, *([abs(one) for one in some] for some in numbers))
    for values, most in zip(reference.right(shape, *numbers), magnitudes, strict=True):
        assert max(most) <= 2048 and max(map(abs, values)) <= 256
        assert len(set(values)) > 20, "equal results would show no misplaced one"


@pytest.mark.parametrize("value", [0.25, float("nan"), float("inf")])
def test_wrong_result_is_counted_and_named(value: float) -> None:
    numbers = reference.integers(SMALL)
    known = reference.right(SMALL, *numbers)
    assert reference.compared(known, known)["differ"] == 0
    came = [[float(one) for one in values] for values in known]
    came[2][5] += value
    found = reference.compared(known, came)
    assert (found["differ"], found["differ_in"]) == (1, ["filter gradient"])
    assert found["first"].startswith("filter gradient, place 5: ")
    with pytest.raises(ValueError, match="forward: 3 numbers came"):
        reference.compared(known, [[0.0] * 3, *known[1:]])


class MadeUp:
    """A side on the CPU, whose convolutions are the reference, or raise."""

    on_gpu = False

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def absent(self) -> None:
        """It can run."""

    def cudnn_files(self) -> list[str]:
        return []

    def by_cudnn(self) -> int:
        return 0

    def cudnn(self) -> dict[str, str]:
        return {"version": "9.1.0"}

    def convolve(self, shape: Shape, kind: str, *numbers: Any) -> Any:
        if self.error is not None and kind == "FP16":
            raise self.error
        return reference.right(shape, *numbers)


def test_each_type_is_run_forward_and_backward() -> None:
    kept = Kept()
    cudnn.measure(MadeUp(), kept)  # type: ignore[no-untyped-call]
    outcomes = {one_["name"]: one_["outcome"] for one_ in kept.trials}
    assert outcomes.pop("2D TF32") == outcomes.pop("3D TF32") == "not-supported"
    assert set(outcomes.values()) == {"ok"}
    assert set(NAMES) - {"2D TF32", "3D TF32"} < set(outcomes)
    broken = Kept()
    cudnn.measure(MadeUp(RuntimeError("'slow_conv' not implemented for 'Half'")), broken)  # type: ignore[no-untyped-call]
    assert [one_["outcome"] for one_ in broken.trials if "FP16" in one_["name"]] == (
        ["not-supported"] * 2
    )


# What ACC-011 says


def test_right_convolutions_pass_and_name_the_types_and_the_library() -> None:
    verdict = one(run(trials()))
    assert isinstance(verdict, Passed)
    assert verdict.detail.startswith("PyTorch 2.5.1+cu124: 2D FP32, 2D TF32, 2D FP16, 2D BF16, 3D")
    assert verdict.detail.endswith("cuDNN 9.1.0")
    lacking = [convolution(name, "not-supported", "none") for name in NAMES if "TF32" in name]
    part = one(run(trials(*lacking), framework="jax"))
    assert isinstance(part, Passed) and "TF32" not in part.detail


def test_wrong_results_are_a_failure() -> None:
    wrong = convolution("2D FP16", differ=3, first="forward, place 7: 12, not 13")
    failing = convolution("3D FP16", "error", "RuntimeError: x")
    verdict, other = judged(run(trials(wrong, failing)))
    assert isinstance(verdict, Finding) and isinstance(other, Finding) and verdict.level == "fail"
    assert matches("wrong convolutions: 2D FP16; of the first, 3 of 2960 results .forward", verdict)
    on_cpu = one(run(trials(wrong), device="cpu"))
    assert isinstance(on_cpu, Finding)


@pytest.mark.parametrize(
    ("reason", "says", "command"),
    [
        ("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "cuDNN does not start", "ldconfig -p"),
        ("CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "of different versions", "grep -i cudnn"),
        ("Unable to find a valid cuDNN algorithm to run", "no algorithm", "query-compute-apps"),
        ("NotFoundError: No algorithm worked! [Op:Conv2D]", "no algorithm", "query-compute-apps"),
        ("something nobody has seen", "something nobody has seen", "import torch"),
    ],
)
def test_convolution_that_fails_has_its_cause(reason: str, says: str, command: str) -> None:
    broken = [convolution(name, "error", f"RuntimeError: {reason}") for name in NAMES]
    verdict = one(run(trials(*broken)))
    assert isinstance(verdict, Finding) and matches(
        f"Convolutions fail in PyTorch .*{says}", verdict
    )
    assert verdict.remedy is not None
    assert any(command in one_ for one_ in verdict.remedy.commands)


def test_loaded_cudnn_below_the_compiled_is_taken_from_the_log() -> None:
    log = [
        "E cuda_dnn.cc:378] Loaded runtime CuDNN library: 7.5.0 but source was compiled with: 7.6.0."
    ]
    broken = [convolution(name, "error", "Failed to get convolution algorithm.") for name in NAMES]
    verdict = one(run(trials(*broken), framework="tensorflow", log=log))
    assert isinstance(verdict, Finding) and any("7.5.0" in one_.value for one_ in verdict.evidence)


def test_taken_memory_and_a_hang_are_no_failure_and_a_crash_is_one() -> None:
    for bad, why in (
        (convolution("2D FP32", "out-of-memory", "CUDA out of memory"), "memory is taken"),
        (convolution("2D FP32", "error", "CUDNN_STATUS_ALLOC_FAILED"), "memory is taken"),
        (convolution("2D FP32", "timeout", "no answer within 30 s"), "2D FP32: no answer"),
    ):
        found = judged(run(trials(bad), outcome="timeout"))
        assert isinstance(found[0], Unjudged) and matches(why, found[0])
        assert not [one_ for one_ in found if isinstance(one_, Finding)]
    crash = convolution("2D FP16", "crashed", "its process was killed by signal 11")
    verdict = one(run(trials(crash), outcome="crashed", reason=crash.reason))
    assert isinstance(verdict, Finding) and matches("a library crashed", verdict)


def test_right_results_alone_do_not_prove_cudnn() -> None:
    verdict = one(run(trials(cudnn=0)))
    assert isinstance(verdict, Finding) and matches("convolves without cuDNN", verdict)
    for framework, count in (("jax", 0), ("tensorflow", None), ("torch", None)):
        untold = one(run(trials(cudnn=count), framework=framework))
        assert isinstance(untold, Unjudged) and matches("is not known", untold)


def test_run_without_trials() -> None:
    for outcome, reason, word in (
        ("not-run", "no GPU: no NVIDIA GPU", "could-not-run"),
        ("not-applicable", "this torch is built without CUDA", "skipped"),
        ("crashed", "", "could-not-run"),
    ):
        made: Any = {"outcome": outcome, "reason": reason}
        verdict = one(run([], **made))
        assert isinstance(verdict, Unjudged) and verdict.outcome == word
        assert matches(reason or outcome, verdict)
    with pytest.raises(Skip, match="not applicable"):
        judged()


@pytest.mark.parametrize(
    "evidence", [{}, {"differ": "many", "first": ["a", "b"], "outputs": -1, "cudnn": "x" * 400}]
)
def test_hostile_evidence_breaks_nothing(evidence: dict[str, Any]) -> None:
    made = [replace(one_, evidence=evidence) for one_ in trials()]
    assert not any(isinstance(one_, Passed) for one_ in judged(run(made)))
