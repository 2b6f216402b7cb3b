"""cuDNN's convolutions: the reference, the comparison, and what is said of each outcome."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from convolved import NAMES, convolution, judged, looked_at, matches, one, run, trials
from msgspec.structs import replace

from envcheck.checks.registry import all_checks
from envcheck.collector.systems.shared.convolving import reference as convolutions
from envcheck.collector.systems.shared.convolving.reference import FLAT, PLAIN, SOLID, Shape
from envcheck.facts.missing import Skip
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import Finding, Passed, Unjudged

CODE = "ACC-011"
TINY = Shape(2, 1, 2, 3, 5, 3, 2)
SHAPES = (FLAT, SOLID, PLAIN, TINY)


# -- the reference


@pytest.mark.parametrize("shape", SHAPES)
def test_the_reference_is_the_definition(shape: Shape) -> None:
    """Checked at places spread over each pass, against the sums as a book has them."""
    case = convolutions.integers(shape)
    y, dx, dw = convolutions.right(case).values
    k, edge, d = shape.kernel, shape.edge, shape.dimensions
    out = (edge - k) // shape.stride + 1

    def flat(place: tuple[int, ...], size: int) -> int:
        return sum(one * size**power for power, one in enumerate(reversed(place)))

    def x(n: int, c: int, place: tuple[int, ...]) -> int:
        return case.image[(n * shape.inputs + c) * edge**d + flat(place, edge)]

    def w(o: int, c: int, tap: tuple[int, ...]) -> int:
        return case.filter[(o * shape.inputs + c) * k**d + flat(tap, k)]

    def g(n: int, o: int, place: tuple[int, ...]) -> int:
        return case.gradient[(n * shape.outputs + o) * out**d + flat(place, out)]

    def met(place: tuple[int, ...], tap: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(shape.stride * i + j for i, j in zip(place, tap, strict=True))

    taps = list(product(range(k), repeat=d))
    outs = list(product(range(out), repeat=d))
    ins = list(product(range(edge), repeat=d))
    for number, (n, o, place) in enumerate(product(range(shape.batch), range(shape.outputs), outs)):
        if number % 37 == 0:
            want = sum(
                w(o, c, tap) * x(n, c, met(place, tap)) for c in range(shape.inputs) for tap in taps
            )
            assert y[number] == want
    for number, (n, c, place) in enumerate(product(range(shape.batch), range(shape.inputs), ins)):
        if number % 41 == 0:
            want = sum(
                w(o, c, tap) * g(n, o, at)
                for o in range(shape.outputs)
                for tap in taps
                for at in outs
                if met(at, tap) == place
            )
            assert dx[number] == want
    for number, (o, c, tap) in enumerate(product(range(shape.outputs), range(shape.inputs), taps)):
        if number % 43 == 0:
            want = sum(
                g(n, o, at) * x(n, c, met(at, tap)) for n in range(shape.batch) for at in outs
            )
            assert dw[number] == want


@pytest.mark.parametrize("shape", [FLAT, SOLID])
def test_every_sum_on_the_way_is_exact_in_each_type(shape: Shape) -> None:
    """FP16 holds integers up to 2048, BF16 up to 256: partial sums in FP16, and results in BF16."""
    known = convolutions.right(convolutions.integers(shape))
    for values, magnitudes in zip(known.values, known.magnitudes, strict=True):
        assert max(magnitudes) <= 2048
        assert max(map(abs, values)) <= 256
        assert len(set(values)) > 20, "results that are all alike would show no misplaced one"


def test_winograd_and_fourier_are_left_out_by_the_stride() -> None:
    for one_ in convolutions.trials():
        assert one_.case.shape.stride == 2 or one_.name == "2D FP32, stride 1"


def test_the_24_bit_numbers_need_all_bits_of_fp32() -> None:
    case = convolutions.significands(TINY)
    image, _filter, _gradient = convolutions.floats(case)
    assert all(math.frexp(one_)[0] * 2**24 % 1 == 0 for one_ in image)
    assert sum(one_ * 2**23 % 2 == 1 for one_ in image) == len(image)
    assert max(map(abs, image)) < 1


# -- the comparison


def results(case: convolutions.Case, known: convolutions.Right) -> list[list[float]]:
    return [[math.ldexp(v, 2 * case.scale) for v in values] for values in known.values]


def test_right_results_leave_nothing_to_tell() -> None:
    case = convolutions.integers(TINY)
    known = convolutions.right(case)
    told = convolutions.compared(case, known, results(case, known))
    assert told == {"outputs": 12 + 50 + 54, "differ": 0, "far": 0, "largest": 0.0}


@pytest.mark.parametrize(
    ("value", "far"), [(0.25, 0), (1.0, 1), (math.nan, 1), (math.inf, 1), (-3.0, 1)]
)
def test_one_wrong_result_is_counted_and_named(value: float, far: int) -> None:
    case = convolutions.integers(TINY)
    known = convolutions.right(case)
    came = results(case, known)
    came[2][5] += value
    told = convolutions.compared(case, known, came)
    assert (told["differ"], told["far"]) == (1, far)
    assert told["differ_in"] == ["filter gradient"]
    assert str(told["first"]).startswith("filter gradient, place 5: ")
    assert told.get("no_numbers", 0) == (1 if not math.isfinite(value) else 0)


def test_too_few_results_are_an_error() -> None:
    case = convolutions.integers(TINY)
    known = convolutions.right(case)
    with pytest.raises(ValueError, match="forward: 3 numbers came, not 12"):
        convolutions.compared(case, known, [[0.0] * 3, *results(case, known)[1:]])


def _tf32(value: float) -> float:
    """Ten fraction bits, rounded to nearest: a simulation of TF32's factors."""
    fraction, exponent = math.frexp(value)
    return math.ldexp(round(fraction * 2**11), exponent - 11)


def test_the_bound_of_24_bit_numbers_tells_fp32_from_tf32() -> None:
    """Sums in doubles of factors as they are, and of factors that were rounded to TF32 (simulated)."""
    case = convolutions.significands(FLAT._replace(batch=1))
    known = convolutions.right(case)
    plain = convolutions.compared(case, known, results(case, known))
    assert plain["differ"] == 0 and float(plain["share"]) < 0.01
    factors = [
        [int(_tf32(math.ldexp(v, case.scale)) * 2**36) for v in numbers]
        for numbers in (case.image, case.filter, case.gradient)
    ]
    rounded = convolutions.right(convolutions.Case(case.shape, *factors, -36))
    came = [[float(Fraction(v, 2**72)) for v in values] for values in rounded.values]
    told = convolutions.compared(case, known, came)
    assert float(told["share"]) > 1 > float(told["share_tf32"]) > 0


# -- what is said


def test_right_convolutions_pass_and_name_the_types_and_the_library() -> None:
    verdict = one(CODE, run("cudnn", trials()))
    assert isinstance(verdict, Passed)
    assert matches("2D FP32, 2D TF32, 2D FP16, 2D BF16, 3D FP32", verdict)
    assert verdict.detail.startswith("PyTorch 2.5.1+cu124: ")
    assert verdict.detail.endswith("cuDNN 9.1.0 (built with 9.1.0)")
    assert "24-bit" not in verdict.detail and "stride" not in verdict.detail


@pytest.mark.parametrize("framework", ["torch", "tensorflow", "jax"])
def test_types_that_are_not_there_are_left_out(framework: str) -> None:
    lacking = [
        convolution(name, "not-supported", "compute capability 7.5 has no TF32")
        for name in NAMES
        if "TF32" in name or "BF16" in name
    ]
    verdict = one(CODE, run("cudnn", trials(*lacking), framework=framework))
    assert isinstance(verdict, Passed)
    assert "TF32" not in verdict.detail and "3D FP16" in verdict.detail


@pytest.mark.parametrize(
    ("trial", "wrong"),
    [
        (convolution("2D FP16", differ=3, far=0, first="forward, place 7: 12, not 13"), True),
        (convolution("2D FP16", differ=3, far=3, first="forward, place 7: 12, not 13"), True),
        (convolution("3D BF16", differ=1, far=1, no_numbers=1), True),
        (convolution("2D FP32, stride 1", differ=900, far=0, largest=1e-4), False),
        (convolution("2D FP32, stride 1", differ=900, far=2, largest=3.0), True),
        (convolution("2D FP32, stride 1", differ=9, far=2, largest=0.6, tf32="no switch"), False),
        (convolution("2D FP32, stride 1", differ=9, far=2, no_numbers=1, tf32="no switch"), True),
        (convolution("2D FP32, 24-bit numbers", share=0.9), False),
        (convolution("2D FP32, 24-bit numbers", share=90.0, share_tf32=1.5), True),
        (
            convolution("2D FP32, 24-bit numbers", share=9.0, share_tf32=0.4, tf32="no switch"),
            False,
        ),
        (convolution("2D FP32, 24-bit numbers", share=9.0, share_tf32=1.4, tf32="no switch"), True),
        (convolution("2D FP32, 24-bit numbers", share="nan", no_numbers=4), True),
    ],
)
def test_what_is_wrong_and_what_is_rounding(trial: Any, wrong: bool) -> None:
    verdict = one(CODE, run("cudnn", trials(trial)))
    assert isinstance(verdict, Finding if wrong else Passed)
    if wrong:
        assert verdict.level == "fail" and verdict.remedy is not None
        assert matches(f"Convolutions in PyTorch 2.5.1.cu124 are wrong: {trial.name}", verdict)
        assert verdict.evidence and trial.name in verdict.evidence[0].value


def test_tf32_though_it_was_switched_off_is_no_wrong_result() -> None:
    rounded = convolution("2D FP32, 24-bit numbers", share=9.0, share_tf32=0.4)
    verdict = one(CODE, run("cudnn", trials(rounded)))
    assert isinstance(verdict, Finding) and verdict.level == "warn"
    assert matches("to TF32 with TF32 switched off", verdict)


CAUSES = {
    "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED": (
        "cuDNN does not start",
        "ldconfig -p",
    ),
    "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH": (
        "parts are of different versions",
        "pip list | grep -i cudnn",
    ),
    "RuntimeError: cuDNN error: CUDNN_STATUS_VERSION_MISMATCH": (
        "different versions",
        "LD_LIBRARY",
    ),
    "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution": (
        "no algorithm",
        "query-compute-apps",
    ),
    "RuntimeError: GET was unable to find an engine to execute this computation": (
        "no algorithm",
        "query-compute-apps",
    ),
    "NotFoundError: No algorithm worked! [Op:Conv2D]": ("no algorithm", "query-compute-apps"),
    "RuntimeError: CUDA error: no kernel image is available for execution on the device": (
        "no code that runs on this GPU",
        None,
    ),
    "RuntimeError: something nobody has seen": ("something nobody has seen", "import torch"),
}


@pytest.mark.parametrize("reason", CAUSES)
def test_a_convolution_that_fails_has_its_cause_and_a_remedy(reason: str) -> None:
    says, command = CAUSES[reason]
    broken = [convolution(name, "error", reason) for name in NAMES]
    verdict = one(CODE, run("cudnn", trials(*broken)))
    assert isinstance(verdict, Finding) and verdict.level == "fail"
    assert matches(f"Convolutions fail in PyTorch .*{says}", verdict)
    assert verdict.remedy is not None
    assert command is None or any(command in one_ for one_ in verdict.remedy.commands)


def test_a_loaded_cudnn_below_the_compiled_is_taken_from_the_log() -> None:
    log = [
        "E cuda_dnn.cc:378] Loaded runtime CuDNN library: 7.5.0 but source was compiled with: 7.6.0."
    ]
    reason = "UnknownError: Failed to get convolution algorithm."
    broken = [convolution(name, "error", reason) for name in NAMES]
    verdict = one(CODE, run("cudnn", trials(*broken), framework="tensorflow", log=log))
    assert isinstance(verdict, Finding)
    assert any("7.5.0" in one_.value for one_ in verdict.evidence)


def test_one_type_that_fails_is_named_alone() -> None:
    broken = convolution(
        "3D FP16", "error", "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"
    )
    verdict = one(CODE, run("cudnn", trials(broken)))
    assert isinstance(verdict, Finding) and "(3D FP16)" in verdict.message


def test_wrong_and_failing_are_both_told() -> None:
    found = judged(
        CODE,
        run(
            "cudnn",
            trials(
                convolution("2D FP32", differ=1), convolution("3D FP16", "error", "RuntimeError: x")
            ),
        ),
    )
    assert [type(one_) for one_ in found] == [Finding, Finding]


@pytest.mark.parametrize(
    "taken",
    [
        convolution("2D FP32", "out-of-memory", "OutOfMemoryError: CUDA out of memory"),
        convolution("2D FP32", "error", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ],
)
def test_a_taken_memory_is_no_verdict(taken: Any) -> None:
    found = judged(CODE, run("cudnn", trials(taken)))
    assert isinstance(found[0], Unjudged) and found[0].outcome == "could-not-run"
    assert matches("memory is taken", found[0])
    assert not [one_ for one_ in found if isinstance(one_, Finding)]


def test_a_crash_is_a_failure_and_a_hang_is_none() -> None:
    made = trials()[:3]
    crash = convolution("2D FP16", "crashed", "its process was killed by signal 11")
    verdict = one(CODE, run("cudnn", [*made, crash], outcome="crashed", reason=crash.reason))
    assert isinstance(verdict, Finding) and matches("a library crashed", verdict)
    hang = convolution("2D FP16", "timeout", "no answer within 30 s")
    found = judged(CODE, run("cudnn", [*made, hang], outcome="timeout", reason=hang.reason))
    assert isinstance(found[0], Unjudged) and matches("2D FP16: no answer within 30 s", found[0])
    assert not [one_ for one_ in found if isinstance(one_, Finding)]


def test_pytorch_without_cudnn_is_named() -> None:
    verdict = one(CODE, run("cudnn", trials(cudnn=0)))
    assert isinstance(verdict, Finding) and verdict.level == "fail"
    assert matches("convolves without cuDNN", verdict)


@pytest.mark.parametrize(
    ("framework", "cudnn"), [("jax", 0), ("tensorflow", None), ("torch", None)]
)
def test_right_results_alone_do_not_prove_cudnn(framework: str, cudnn: int | None) -> None:
    verdict = one(CODE, run("cudnn", trials(cudnn=cudnn), framework=framework))
    assert isinstance(verdict, Unjudged) and verdict.outcome == "could-not-run"
    assert matches("cannot be told", verdict)


def test_on_the_cpu_it_is_none_of_cudnn_s_but_wrong_results_are_told() -> None:
    verdict = one(CODE, run("cudnn", trials(cudnn=0), device="cpu"))
    assert isinstance(verdict, Unjudged) and verdict.outcome == "skipped"
    assert verdict.reason.startswith("not applicable: ") and "on the CPU" in verdict.reason
    wrong = one(CODE, run("cudnn", trials(convolution("2D FP32", differ=5)), device="cpu"))
    assert isinstance(wrong, Finding) and "on the CPU" in wrong.message and wrong.remedy is None


@pytest.mark.parametrize(
    ("outcome", "reason", "word", "shown"),
    [
        ("not-run", "no GPU: no NVIDIA GPU", "could-not-run", "PyTorch .*: no GPU"),
        (
            "not-applicable",
            "this torch is built without CUDA",
            "skipped",
            "not applicable: PyTorch",
        ),
        ("busy", "GPU 0: another process uses it", "could-not-run", "another process"),
        ("crashed", "", "could-not-run", "crashed"),
    ],
)
def test_a_run_without_trials(outcome: Any, reason: str, word: str, shown: str) -> None:
    verdict = one(CODE, run("cudnn", [], outcome=outcome, reason=reason))
    assert isinstance(verdict, Unjudged) and verdict.outcome == word
    assert matches(shown, verdict)


def test_nothing_that_a_framework_supports_is_could_not_run() -> None:
    none = [convolution(name, "not-supported", "no kernel") for name in NAMES]
    verdict = one(CODE, run("cudnn", trials(*none)))
    assert isinstance(verdict, Unjudged) and matches("no kernel", verdict)


def test_without_a_framework_it_is_not_applicable() -> None:
    with pytest.raises(Skip, match="not applicable"):
        judged(CODE)


@pytest.mark.parametrize(
    "evidence",
    [
        {"differ": "many", "first": ["a", "b"], "tf32": 7},
        {"differ": -1, "share": "nan"},
        {"outputs": "x" * 400, "differ": 2.5, "first": "\x1b[31mred"},
        {},
    ],
)
def test_hostile_evidence_breaks_nothing(evidence: dict[str, Any]) -> None:
    made = [replace(one_, evidence=evidence) for one_ in trials()]
    for verdict in judged(CODE, run("cudnn", made)):
        assert not isinstance(verdict, Passed) or evidence


def test_the_same_snapshot_says_the_same() -> None:
    (check,) = (one_ for one_ in all_checks() if one_.code == CODE)
    place = looked_at(run("cudnn", trials(convolution("2D FP16", differ=3))))
    assert list(check.judge(SnapshotView(place))) == list(check.judge(SnapshotView(place)))
