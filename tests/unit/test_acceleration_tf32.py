"""TF32 in convolutions: what the bits say, and what is said of each state."""

from __future__ import annotations

import array
from typing import Any

import pytest
from convolved import (
    OVERRIDE,
    bits,
    judged,
    looked_at,
    matches,
    one,
    run,
    setting,
    settings,
)
from msgspec.structs import replace

from envcheck.checks.registry import all_checks
from envcheck.collector.systems.running import records
from envcheck.collector.systems.shared.convolving import reference as convolutions
from envcheck.collector.systems.shared.convolving import tf32 as tf32_convolutions
from envcheck.collector.systems.shared.convolving.reference import Shape
from envcheck.facts.acceleration import SystemTrial
from envcheck.facts.missing import Skip
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import Finding, Passed, Unjudged
from envcheck.tensorcores.factors import FORMS, parse, rounded_to, unit
from envcheck.tensorcores.formats import Rounding

CODE = "ACC-006"
SMALL = Shape(2, 7, 4, 8, 5, 3, 2)


def read(lines: list[str]) -> str:
    sums = [parse(line) for line in lines]
    assert None not in sums
    return rounded_to([one_ for one_ in sums if one_ is not None])


# -- the bits


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rounding", ["RZ", "RNA", "RNE"])
def test_each_rounding_of_factors_is_told_from_the_others(form: str, rounding: Rounding) -> None:
    assert read(bits(form, rounding)) == form


@pytest.mark.parametrize(("left", "form"), [("T1", "FP32"), ("R", "TF32"), ("R", "FP16")])
def test_without_the_vector_that_tells_them_apart_nothing_is_said(left: str, form: str) -> None:
    lines = [line for line in bits(form) if not line.startswith((left + " ", "T2 "))]
    assert read(lines) == ("" if left == "R" or form == "FP32" else form)
    assert read([]) == ""


@pytest.mark.parametrize(
    "line",
    [
        "T1 3F801800 x 3F800000 = 3F802000 or 3F801800",  # two kernels, or a border
        "T1 3F801800 x 3F800000 = 3F802000 or more",
        "T1 3F801800 x 3F800000 = 00000000",
        "T1 3F801800 x 3F800000 = 7FC00000",
        "T1 7F800000 x 3F800000 = 7F800000",
    ],
)
def test_outputs_that_no_rounding_gives_tell_nothing(line: str) -> None:
    assert read([line, *bits("TF32")[1:]]) == ""


@pytest.mark.parametrize(
    "line",
    [
        "",
        "T1",
        "T1 = ",
        "T1 3F801800 x 3F800000",
        "T1 3F801800 = 3F801800",
        "T1 3F80180 x 3F800000 = 3F801800",
        "T1 3f801800 x 3F800000 = 3F801800",
        "T1 3F801800 x 3F800000 x 3F800000 = 3F801800",
        "T1 3F801800 x 3F800000 = more",
        "T1 " + " + ".join(["3F801800 x 3F800000"] * 9) + " = 3F801800",
        "T1 ＊F801800 x 3F800000 = 3F801800",
    ],
)
def test_what_is_no_line_of_ours_is_none(line: str) -> None:
    assert parse(line) is None


def test_tensor_cores_are_told_by_their_sums() -> None:
    def named(lines: list[str]) -> str:
        return unit([one_ for line in lines if (one_ := parse(line)) is not None], "8.0")

    assert "Tensor Core" in named(bits("TF32", "RNA"))
    assert named(bits("TF32", "RNA", tensor=False)) == ""
    assert named(bits("FP32")) == ""


# -- the collector's side: a convolution whose result is made here, in the place of a framework's


class Simulated:
    """A framework whose convolution gives the product of the centre's factors, rounded to ten bits or not."""

    on_gpu = False

    def __init__(self, tf32: bool) -> None:
        self._tf32 = tf32

    def words(self, shape: Shape, image: bytes, filter_: bytes) -> bytes:
        size, kernel, result = convolutions.places(shape)
        x, w = array.array("f"), array.array("f")
        x.frombytes(image)
        w.frombytes(filter_)
        if self._tf32:
            for values in (x, w):
                words = array.array("I", values.tobytes())
                for place, word in enumerate(words):
                    words[place] = word + (1 << 12) >> 13 << 13
                values[:] = array.array("f", words.tobytes())
        out = array.array("f")
        for n in range(shape.batch):
            for o in range(shape.outputs):
                total = 0.0
                for c in range(shape.inputs):
                    factor = w[(o * shape.inputs + c) * kernel + kernel // 2]
                    total += x[(n * shape.inputs + c) * size] * factor
                out.extend([total] * result)
        return out.tobytes()


@pytest.mark.parametrize(("tf32", "form"), [(True, "TF32"), (False, "FP32")])
def test_a_simulated_rounding_is_read_as_what_it_is(tf32: bool, form: str) -> None:
    lines = tf32_convolutions.lines(Simulated(tf32), SMALL)
    assert [line.split()[0] for line in lines] == ["T1", "T2", "T3", "S1", "S1n", "R"]
    assert read(lines) == form


def test_a_filter_is_zero_but_for_its_centre() -> None:
    words = array.array("I", tf32_convolutions.filter_(SMALL))
    for place, word in enumerate(words):
        assert place % 9 == 4 or word == 0
    assert all(
        any(words[o * 36 + c * 9 + 4] for c in range(SMALL.inputs)) for o in range(SMALL.outputs)
    )


def test_outputs_that_are_not_alike_are_all_told() -> None:
    class Torn(Simulated):
        def __init__(self, tf32: bool, short: bool = False) -> None:
            super().__init__(tf32)
            self._short = short

        def words(self, shape: Shape, image: bytes, filter_: bytes) -> bytes:
            made = array.array("I", super().words(shape, image, filter_))
            made[0:3] = array.array("I", range(1, 4))  # of the first plane, which has four places
            made[6 * 8 * 4 : 6 * 8 * 4 + 4] = array.array(
                "I", range(4, 8)
            )  # of the next image with T1
            return made.tobytes()[: -4 if self._short else None]

    first = tf32_convolutions.lines(Torn(True), SMALL)[0]
    assert first.startswith("T1 3F801800 x 3F800000 = 3F802000 or ") and first.endswith(" or more")
    with pytest.raises(ValueError, match="words came"):
        tf32_convolutions.lines(Torn(True, short=True), SMALL)


class Answered:
    """What ranks.run gives back of one."""

    def __init__(self, number: int, answer: Any = None, reason: str = "") -> None:
        self.number, self.answer, self.reason = number, answer, reason
        self.stopped = False


def started(monkeypatch: pytest.MonkeyPatch, *rounds: list[Answered]) -> list[dict[str, Any]]:
    """What ranks.run is given, while it gives these."""
    given: list[dict[str, Any]] = []
    left = list(rounds)

    def run_(params: Any, number: int, _seconds: float, **named: Any) -> list[Answered]:
        given.append({"params": params, **named})
        assert len(left[0]) == number
        return left.pop(0)

    monkeypatch.setattr(tf32_convolutions.ranks, "run", run_)
    return given


def capability(monkeypatch: pytest.MonkeyPatch, told: tuple[int, int] | None) -> None:
    monkeypatch.setattr(tf32_convolutions.convolving, "capability", lambda: told)


RECORDS = [[{"name": "default", "outcome": "ok", "evidence": {}, "seconds": 0.1}, "trial"]]
GPU = {"device": "gpu", "memory_mib": None}


def test_a_chip_without_tf32_is_not_applicable_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = started(monkeypatch)
    capability(monkeypatch, (7, 5))
    with pytest.raises(records.NotApplicable, match=r"compute capability 7\.5 has no TF32"):
        tf32_convolutions.run(GPU, records.KeptTrials())
    assert given == []


@pytest.mark.parametrize("told", [(8, 0), None])
def test_the_override_is_in_one_process_alone(
    monkeypatch: pytest.MonkeyPatch, told: tuple[int, int] | None
) -> None:
    capability(monkeypatch, told)
    given = started(monkeypatch, [Answered(0, RECORDS), Answered(1, {"128 channels": ["x"]})])
    teller = records.KeptTrials()
    tf32_convolutions.run(GPU, teller)
    (call,) = given
    assert [call["environ"](rank) for rank in (0, 1)] == [{}, {"NVIDIA_TF32_OVERRIDE": "0"}]
    assert [call["more"](rank)["override"] for rank in (0, 1)] == [False, True]
    made = [records.trial_of(*one_) for one_ in teller.trials]
    assert [one_["name"] for one_ in made] == [OVERRIDE, "default"]
    assert made[0]["evidence"] == {"128 channels": ["x"]} and made[0]["control"]


def test_a_gpu_that_is_open_to_one_process_is_used_by_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    capability(monkeypatch, (9, 0))
    taken = "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"
    given = started(
        monkeypatch, [Answered(0, RECORDS), Answered(1, None, taken)], [Answered(0, {"y": ["x"]})]
    )
    teller = records.KeptTrials()
    tf32_convolutions.run(GPU, teller)
    assert given[1]["environ"](0) == {"NVIDIA_TF32_OVERRIDE": "0"}
    assert [trial["outcome"] for trial, _key in teller.trials] == ["ok", "ok"]


def test_a_rank_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    capability(monkeypatch, (9, 0))
    started(monkeypatch, [Answered(0, RECORDS), Answered(1, None, "no answer within 25 s")])
    teller = records.KeptTrials()
    tf32_convolutions.run(GPU, teller)
    control = teller.trials[0][0]
    assert control["outcome"] == "error" and "no answer within 25 s" in control["reason"]
    started(monkeypatch, [Answered(0, None, "PyTorch sees no GPU here"), Answered(1, {})])
    with pytest.raises(records.CouldNotRun, match="PyTorch sees no GPU here"):
        tf32_convolutions.run(GPU, records.KeptTrials())


# -- what is said


def test_engaged_where_the_default_rounds_and_the_controls_do_not() -> None:
    verdict = one(CODE, run("tf32", settings()))
    assert isinstance(verdict, Passed)
    assert verdict.detail.startswith(
        "PyTorch 2.5.1+cu124: TF32 without being asked, on Tensor Cores"
    )
    assert "the framework's switch switches it off" in verdict.detail
    assert f"{OVERRIDE} switches it off" in verdict.detail


def test_one_size_with_tf32_is_enough_and_no_control_may_have_one() -> None:
    half = setting("default", **{"512 channels": bits("FP32")})
    assert isinstance(one(CODE, run("tf32", settings(default=half))), Passed)
    leak = setting("switch off", "FP32", **{"512 channels": bits("TF32")})
    verdict = one(CODE, run("tf32", settings(off=leak, override=None)))
    assert isinstance(verdict, Finding) and verdict.level == "warn"


def test_an_override_that_does_not_reach_is_told() -> None:
    verdict = one(CODE, run("tf32", settings(override=setting(OVERRIDE)), framework="jax"))
    assert isinstance(verdict, Passed) and f"{OVERRIDE} does not reach it" in verdict.detail


@pytest.mark.parametrize(
    "control",
    [
        SystemTrial(name="switch off", control=True, outcome="not-supported", reason="no switch"),
        None,
    ],
)
def test_one_control_is_enough(control: SystemTrial | None) -> None:
    assert isinstance(one(CODE, run("tf32", settings(off=control, on=None))), Passed)


def test_without_a_control_that_ran_nothing_is_proven() -> None:
    broken = SystemTrial(
        name=OVERRIDE, control=True, outcome="error", reason="RuntimeError: no answer"
    )
    verdict = one(CODE, run("tf32", settings(off=None, override=broken)))
    assert isinstance(verdict, Unjudged) and verdict.outcome == "could-not-run"
    assert matches("no control ran without it .*no answer", verdict)


def test_tf32_that_nothing_ends_is_a_warning() -> None:
    verdict = one(
        CODE, run("tf32", settings(off=setting("switch off"), override=setting(OVERRIDE)))
    )
    assert isinstance(verdict, Finding) and verdict.level == "warn"
    assert matches("cannot be switched off", verdict)


@pytest.mark.parametrize(
    ("framework", "level"), [("torch", "fail"), ("tensorflow", "fail"), ("jax", "warn")]
)
def test_lost_without_anybody_s_wish(framework: str, level: str) -> None:
    kept = setting("default", "FP32", switch="allow_tf32 is False", environment=[], cudnn="9.1.0")
    verdict = one(CODE, run("tf32", settings(default=kept), framework=framework))
    assert isinstance(verdict, Finding) and verdict.level == level
    assert matches("without TF32 .allow_tf32 is False.", verdict)
    assert verdict.remedy is not None and "ask for it" in verdict.remedy.text


@pytest.mark.parametrize(
    ("framework", "variable"),
    [
        ("torch", "NVIDIA_TF32_OVERRIDE=0"),
        ("tensorflow", "NVIDIA_TF32_OVERRIDE=0"),
        ("jax", "JAX_DEFAULT_MATMUL_PRECISION=float32"),
        ("jax", "JAX_DEFAULT_MATMUL_PRECISION=highest"),
    ],
)
def test_switched_off_by_a_variable_is_a_warning_that_names_it(
    framework: str, variable: str
) -> None:
    kept = setting("default", "FP32", environment=["X=1", variable])
    verdict = one(CODE, run("tf32", settings(default=kept), framework=framework))
    assert isinstance(verdict, Finding) and verdict.level == "warn"
    assert matches(variable, verdict)
    assert verdict.remedy is not None
    assert verdict.remedy.commands == [f"unset {variable.partition('=')[0]}"]


def test_jax_s_variable_says_nothing_of_pytorch() -> None:
    kept = setting("default", "FP32", environment=["JAX_DEFAULT_MATMUL_PRECISION=highest"])
    verdict = one(CODE, run("tf32", settings(default=kept)))
    assert isinstance(verdict, Finding) and verdict.level == "fail"


@pytest.mark.parametrize(
    ("framework", "version", "cudnn"),
    [
        ("tensorflow", "1.15.5", "7.6.5"),
        ("tensorflow", "2.3.4", "8.0.2"),
        ("torch", "1.6.0", "7.6.5"),
        ("torch", "1.13.1", "7.6.5"),
    ],
)
def test_older_than_tf32_is_not_applicable(framework: str, version: str, cudnn: str) -> None:
    trials = settings(default=setting("default", "FP32", cudnn=cudnn), on=None)
    verdict = one(CODE, run("tf32", trials, framework=framework, framework_version=version))
    assert isinstance(verdict, Unjudged) and verdict.outcome == "skipped"
    assert matches("^.*not applicable: .*older than TF32", verdict)


def test_nvidia_s_1_15_has_it() -> None:
    made = run(
        "tf32", settings(off=None), framework="tensorflow", framework_version="1.15.5+nv23.3"
    )
    assert isinstance(one(CODE, made), Passed)


def test_fp32_though_tf32_was_asked_for_cannot_tell() -> None:
    """cuDNN may take a kernel without TF32 for these sizes: no more is known of others."""
    trials = settings(default=setting("default", "FP32"), on=setting("switch on", "FP32"))
    verdict = one(CODE, run("tf32", trials))
    assert isinstance(verdict, Unjudged) and verdict.outcome == "could-not-run"
    assert matches("also where TF32 is asked for", verdict)


@pytest.mark.parametrize("form", ["FP16", "BF16"])
def test_less_than_tf32_is_a_warning(form: str) -> None:
    verdict = one(CODE, run("tf32", settings(default=setting("default", form))))
    assert isinstance(verdict, Finding) and verdict.level == "warn" and matches(form, verdict)


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"128 channels": []},
        {"128 channels": ["T1 3F801800 x 3F800000 = 00000000", *bits("TF32")[1:]]},
        {"128 channels": [*bits("TF32"), "nonsense"]},
        {"128 channels": "no list", "x channels": 3, "switch": ["a"], "environment": "NVIDIA"},
        {f"{n} channels": ["T1 " + "F" * 399] * 40 for n in range(60)},
    ],
)
def test_bits_that_are_missing_or_unknown_cannot_tell(evidence: dict[str, Any]) -> None:
    strange = SystemTrial(name="default", outcome="ok", evidence=evidence)
    verdict = one(CODE, run("tf32", settings(default=strange)))
    assert isinstance(verdict, Unjudged) and verdict.outcome == "could-not-run"


@pytest.mark.parametrize("outcome", ["error", "out-of-memory", "timeout", "crashed"])
def test_a_default_that_did_not_run_is_could_not_run(outcome: Any) -> None:
    broken = SystemTrial(name="default", outcome=outcome, reason="RuntimeError: cuDNN error")
    verdict = one(CODE, run("tf32", settings(default=broken)))
    assert isinstance(verdict, Unjudged) and matches("cuDNN error", verdict)
    assert isinstance(one(CODE, run("tf32", settings(default=None))), Unjudged)


@pytest.mark.parametrize(
    ("outcome", "reason", "word"),
    [
        ("not-applicable", "compute capability 7.5 has no TF32", "skipped"),
        ("not-run", "no GPU: none", "could-not-run"),
    ],
)
def test_a_run_without_trials(outcome: Any, reason: str, word: str) -> None:
    verdict = one(CODE, run("tf32", [], outcome=outcome, reason=reason))
    assert isinstance(verdict, Unjudged) and verdict.outcome == word
    assert matches(reason, verdict)


def test_a_cpu_s_fp32_is_not_tf32_and_no_loss() -> None:
    made = run("tf32", settings(default=setting("default", "FP32"), on=None), device="cpu")
    verdict = one(CODE, made)
    assert isinstance(verdict, Unjudged) and verdict.outcome == "skipped"


def test_without_a_framework_it_is_not_applicable() -> None:
    with pytest.raises(Skip, match="not applicable"):
        judged(CODE)


def test_the_same_snapshot_says_the_same() -> None:
    (check,) = (one_ for one_ in all_checks() if one_.code == CODE)
    place = looked_at(run("tf32", settings()), run("tf32", settings(), framework="jax"))
    first = list(check.judge(SnapshotView(place)))
    assert first == list(check.judge(SnapshotView(replace(place)))) and len(first) == 2
