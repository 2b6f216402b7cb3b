"""Convolutions: the reference, the bits of TF32, and what ACC-011 and ACC-006 say of each outcome."""

from __future__ import annotations

import array
from types import SimpleNamespace
from typing import Any

import pytest
from convolved import (
    NAMES,
    OVERRIDE,
    bits,
    convolution,
    judged,
    matches,
    one,
    run,
    setting,
    settings,
    trials,
)
from kept import Kept
from msgspec.structs import replace

from envcheck.collector.systems import cudnn, tf32
from envcheck.collector.systems.running import records
from envcheck.collector.systems.shared.convolving import Shape, reference
from envcheck.facts.acceleration import SystemTrial
from envcheck.facts.missing import Skip
from envcheck.findings.model import Finding, Passed, Unjudged
from envcheck.tensorcores.factors import FORMS, parse, rounded_to, unit
from envcheck.tensorcores.formats import Rounding

CUDNN, TF32 = "ACC-011", "ACC-006"
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


# The bits of TF32


def read(lines: list[str]) -> str:
    sums = [parse(line) for line in lines]
    assert None not in sums
    return rounded_to([one_ for one_ in sums if one_ is not None])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rounding", ["RZ", "RNA", "RNE"])
def test_each_rounding_of_factors_differs_from_the_others(form: str, rounding: Rounding) -> None:
    assert read(bits(form, rounding)) == form
    assert read([line for line in bits("FP16") if line[:2] not in ("R ", "T2")]) == ""


@pytest.mark.parametrize(
    "word", ["3F802000 or 3F801800", "3F802000 or more", "00000000", "7FC00000"]
)
def test_outputs_that_no_rounding_gives_show_nothing(word: str) -> None:
    assert read([f"T1 3F801800 x 3F800000 = {word}", *bits("TF32")[1:]]) == ""


@pytest.mark.parametrize(
    "line",
    [
        "",
        "T1 = ",
        "T1 3F801800 = 3F801800",
        "T1 3F80180 x 3F800000 = 3F801800",
        "T1 3f801800 x 3F800000 = 3F801800",
        "T1 3F801800 x 3F800000 = more",
        "T1 " + " + ".join(["3F801800 x 3F800000"] * 9) + " = 3F801800",
        "T1 ＊F801800 x 3F800000 = 3F801800",
    ],
)
def test_malformed_line_is_none(line: str) -> None:
    assert parse(line) is None


def test_tensor_cores_show_by_their_sums() -> None:
    def named(lines: list[str]) -> str:
        return unit([one_ for line in lines if (one_ := parse(line)) is not None], "8.0")

    assert "Tensor Core" in named(bits("TF32", "RNA"))
    assert named(bits("TF32", "RNA", tensor=False)) == named(bits("FP32")) == ""


class Simulated:
    """A framework whose factors are rounded to ten bits, unless its switch is off."""

    on_gpu = False

    def __init__(self, tf32: bool, torn: bool = False) -> None:
        self.tf32, self.torn = tf32, torn

    def flag(self) -> str:
        return f"tf32 is {self.tf32}"

    def set_tf32(self, allowed: bool) -> None:
        self.tf32 = allowed

    def cudnn(self) -> dict[str, str]:
        return {"version": "9.1.0"}

    def convolve(self, shape: Shape, kind: str, image: list[float], filter_: list[float]) -> Any:
        assert kind == "FP32"
        size, kernel, result = shape.places
        x, w = (self._rounded(some) for some in (image, filter_))
        out = []
        for n in range(shape.batch):
            for o in range(shape.outputs):
                pairs = (
                    (
                        x[(n * shape.inputs + c) * size],
                        w[(o * shape.inputs + c) * kernel + kernel // 2],
                    )
                    for c in range(shape.inputs)
                )
                out += [sum(a * b for a, b in pairs)] * result
        if self.torn:
            out[:4] = [1.0, 2.0, 3.0, 4.0]
        return [out]

    def _rounded(self, values: list[float]) -> list[float]:
        held = array.array("I", array.array("f", values).tobytes())
        if self.tf32:
            held = array.array("I", [word + (1 << 12) >> 13 << 13 for word in held])
        return list(array.array("f", held.tobytes()))


def test_default_and_the_switch_are_read_from_the_bits() -> None:
    kept = Kept()
    tf32.measure(Simulated(True), kept)  # type: ignore[no-untyped-call]
    forms = {one_["name"]: read(one_["evidence"]["16 channels"]) for one_ in kept.trials}
    assert forms == {"default": "TF32", "switch off": "FP32", "switch on": "TF32"}
    first = tf32.lines(Simulated(True, torn=True), SMALL)[0]  # type: ignore[no-untyped-call]
    assert first.startswith("T1 3F801800 x 3F800000 = 3F802000 or ") and first.endswith(" or more")


def test_override_is_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def started(params: Any, number: int, _seconds: float, environ: Any) -> list[Any]:
        given.append((number, environ(0)))
        return [SimpleNamespace(number=0, answer={"128 channels": ["x"]})]

    monkeypatch.setattr(tf32.ranks, "run", started)
    monkeypatch.setattr(tf32.convolving, "capability", lambda: (8, 0))
    made_up = Simulated(True)
    made_up.absent = lambda: None  # type: ignore[attr-defined]
    monkeypatch.setattr(tf32.convolving, "side_of", lambda *given: made_up)
    kept = Kept()
    tf32.run(None, {"device": "gpu"}, kept)  # type: ignore[no-untyped-call]
    assert given == [(1, {"NVIDIA_TF32_OVERRIDE": "0"})]
    assert kept.trials[-1]["evidence"] == {"128 channels": ["x"]} and kept.trials[-1]["control"]
    monkeypatch.setattr(tf32.convolving, "capability", lambda: (7, 5))
    with pytest.raises(records.NotApplicable, match=r"compute capability 7\.5 has no TF32"):
        tf32.run(None, {"device": "gpu"}, kept)  # type: ignore[no-untyped-call]


# What ACC-011 says


def test_right_convolutions_pass_and_name_the_types_and_the_library() -> None:
    verdict = one(CUDNN, run("cudnn", trials()))
    assert isinstance(verdict, Passed)
    assert verdict.detail.startswith("PyTorch 2.5.1+cu124: 2D FP32, 2D TF32, 2D FP16, 2D BF16, 3D")
    assert verdict.detail.endswith("cuDNN 9.1.0")
    lacking = [convolution(name, "not-supported", "none") for name in NAMES if "TF32" in name]
    part = one(CUDNN, run("cudnn", trials(*lacking), framework="jax"))
    assert isinstance(part, Passed) and "TF32" not in part.detail


def test_wrong_results_are_a_failure() -> None:
    wrong = convolution("2D FP16", differ=3, first="forward, place 7: 12, not 13")
    failing = convolution("3D FP16", "error", "RuntimeError: x")
    verdict, other = judged(CUDNN, run("cudnn", trials(wrong, failing)))
    assert isinstance(verdict, Finding) and isinstance(other, Finding) and verdict.level == "fail"
    assert matches("wrong convolutions: 2D FP16; of the first, 3 of 2960 results .forward", verdict)
    on_cpu = one(CUDNN, run("cudnn", trials(wrong), device="cpu"))
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
    verdict = one(CUDNN, run("cudnn", trials(*broken)))
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
    verdict = one(CUDNN, run("cudnn", trials(*broken), framework="tensorflow", log=log))
    assert isinstance(verdict, Finding) and any("7.5.0" in one_.value for one_ in verdict.evidence)


def test_taken_memory_and_a_hang_are_no_failure_and_a_crash_is_one() -> None:
    for bad, why in (
        (convolution("2D FP32", "out-of-memory", "CUDA out of memory"), "memory is taken"),
        (convolution("2D FP32", "error", "CUDNN_STATUS_ALLOC_FAILED"), "memory is taken"),
        (convolution("2D FP32", "timeout", "no answer within 30 s"), "2D FP32: no answer"),
    ):
        found = judged(CUDNN, run("cudnn", trials(bad), outcome="timeout"))
        assert isinstance(found[0], Unjudged) and matches(why, found[0])
        assert not [one_ for one_ in found if isinstance(one_, Finding)]
    crash = convolution("2D FP16", "crashed", "its process was killed by signal 11")
    verdict = one(CUDNN, run("cudnn", trials(crash), outcome="crashed", reason=crash.reason))
    assert isinstance(verdict, Finding) and matches("a library crashed", verdict)


def test_right_results_alone_do_not_prove_cudnn() -> None:
    verdict = one(CUDNN, run("cudnn", trials(cudnn=0)))
    assert isinstance(verdict, Finding) and matches("convolves without cuDNN", verdict)
    for framework, count in (("jax", 0), ("tensorflow", None), ("torch", None)):
        untold = one(CUDNN, run("cudnn", trials(cudnn=count), framework=framework))
        assert isinstance(untold, Unjudged) and matches("is not known", untold)


@pytest.mark.parametrize("system", ["cudnn", "tf32"])
def test_run_without_trials(system: str) -> None:
    code = CUDNN if system == "cudnn" else TF32
    for outcome, reason, word in (
        ("not-run", "no GPU: no NVIDIA GPU", "could-not-run"),
        ("not-applicable", "this torch is built without CUDA", "skipped"),
        ("crashed", "", "could-not-run"),
    ):
        made: Any = {"outcome": outcome, "reason": reason}
        verdict = one(code, run(system, [], **made))
        assert isinstance(verdict, Unjudged) and verdict.outcome == word
        assert matches(reason or outcome, verdict)
    with pytest.raises(Skip, match="not applicable"):
        judged(code)


# What ACC-006 says


def test_engaged_where_the_default_rounds_and_the_controls_do_not() -> None:
    verdict = one(TF32, run("tf32", settings()))
    assert isinstance(verdict, Passed)
    assert "2.5.1+cu124: TF32 without being asked, on Tensor Cores" in verdict.detail
    assert f"the framework's switch switches it off, {OVERRIDE} switches it off" in verdict.detail
    unreached = one(TF32, run("tf32", settings(override=setting(OVERRIDE)), framework="jax"))
    assert isinstance(unreached, Passed) and "does not reach it" in unreached.detail
    half = setting("default", **{"512 channels": bits("FP32")})
    assert isinstance(one(TF32, run("tf32", settings(default=half))), Passed)


@pytest.mark.parametrize("reason", ["no switch", None])
def test_one_control_is_enough(reason: str | None) -> None:
    lacks = SystemTrial(
        name="switch off", control=True, outcome="not-supported", reason="no switch"
    )
    off = lacks if reason else None
    nvidia = {"framework": "tensorflow", "framework_version": "1.15.5+nv23.3"}
    assert isinstance(one(TF32, run("tf32", settings(off=off, on=None), **nvidia)), Passed)
    broken = SystemTrial(name=OVERRIDE, control=True, outcome="error", reason="no answer")
    verdict = one(TF32, run("tf32", settings(off=off, override=broken)))
    assert isinstance(verdict, Unjudged) and matches(
        "no control ran without it .*no answer", verdict
    )


def test_tf32_that_nothing_ends_is_a_warning() -> None:
    stays = settings(off=setting("switch off"), override=setting(OVERRIDE))
    verdict = one(TF32, run("tf32", stays))
    assert isinstance(verdict, Finding) and verdict.level == "warn"
    assert matches("cannot be switched off", verdict)


@pytest.mark.parametrize(
    ("framework", "level"), [("torch", "fail"), ("tensorflow", "fail"), ("jax", "warn")]
)
def test_tf32_that_is_lost(framework: str, level: str) -> None:
    kept = setting("default", "FP32", switch="allow_tf32 is False", environment=[], cudnn="9.1.0")
    verdict = one(TF32, run("tf32", settings(default=kept), framework=framework))
    assert isinstance(verdict, Finding) and verdict.level == level
    assert matches("without TF32 .allow_tf32 is False.", verdict)


@pytest.mark.parametrize(
    ("framework", "variable", "level"),
    [
        ("torch", "NVIDIA_TF32_OVERRIDE=0", "warn"),
        ("jax", "JAX_DEFAULT_MATMUL_PRECISION=float32", "warn"),
        ("torch", "JAX_DEFAULT_MATMUL_PRECISION=highest", "fail"),
    ],
)
def test_variable_that_switches_it_off_is_named(framework: str, variable: str, level: str) -> None:
    kept = setting("default", "FP32", environment=["X=1", variable])
    verdict = one(TF32, run("tf32", settings(default=kept), framework=framework))
    assert isinstance(verdict, Finding) and verdict.level == level
    if level == "warn":
        assert verdict.remedy is not None
        assert verdict.remedy.commands == [f"unset {variable.partition('=')[0]}"]


@pytest.mark.parametrize(
    ("framework", "version", "cudnn_"),
    [("tensorflow", "2.3.4", "8.0.2"), ("torch", "1.6.0", "7.6.5"), ("torch", "1.13.1", "7.6.5")],
)
def test_older_than_tf32_is_not_applicable(framework: str, version: str, cudnn_: str) -> None:
    made = settings(default=setting("default", "FP32", cudnn=cudnn_), on=None)
    verdict = one(TF32, run("tf32", made, framework=framework, framework_version=version))
    assert isinstance(verdict, Unjudged) and matches("not applicable: .*older than TF32", verdict)


def test_what_does_not_show_could_not_run() -> None:
    broken = SystemTrial(name="default", outcome="timeout", reason="cuDNN error")
    off_both = settings(default=setting("default", "FP32"), on=setting("switch on", "FP32"))
    for made, why in (
        (off_both, "also where TF32 is asked for"),
        (settings(default=broken), "cuDNN error"),
        (settings(default=None), "not reached"),
        (settings(default=setting("default", "BF16")), "no known rounding"),
    ):
        verdict = one(TF32, run("tf32", made))
        assert isinstance(verdict, Unjudged) and verdict.outcome == "could-not-run"
        assert matches(why, verdict)
    on_cpu = settings(default=setting("default", "FP32"), on=None)
    assert one(TF32, run("tf32", on_cpu, device="cpu")).outcome == "skipped"


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"128 channels": "no list", "x channels": 3, "switch": ["a"], "environment": "NVIDIA"},
        {f"{n} channels": ["T1 " + "F" * 399] * 40 for n in range(60)},
        {"differ": "many", "first": ["a", "b"], "outputs": -1, "cudnn": "x" * 400},
    ],
)
def test_hostile_evidence_breaks_nothing(evidence: dict[str, Any]) -> None:
    strange = SystemTrial(name="default", outcome="ok", evidence=evidence)
    verdict = one(TF32, run("tf32", settings(default=strange)))
    assert isinstance(verdict, Unjudged) and verdict.outcome == "could-not-run"
    made = [replace(one_, evidence=evidence) for one_ in trials()]
    assert not any(isinstance(one_, Passed) for one_ in judged(CUDNN, run("cudnn", made)))
