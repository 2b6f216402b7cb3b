"""AMP by graph rewrite: each state of ACC-001, from made-up runs."""

from __future__ import annotations

from typing import Any

import pytest
from amp_graph_runs import bad, falls, functions, judged, run, seen, sessions, step, trial, words
from targets import judge

from envcheck.checks.registry import all_checks
from envcheck.findings.model import CheckResult

CODE = "ACC-001"


def reason(result: CheckResult) -> str:
    return result.reason + " ".join(one.reason for one in result.unjudged)


def test_engaged_says_how_much_is_in_half_and_what_the_loss_scale_did() -> None:
    result = judged(CODE, words(), *sessions(), *falls(), *functions())
    assert result.outcome == "pass"
    assert result.detail.startswith(
        "TensorFlow 2.15.1: 5 of 5 convolutions and 3 of 3 products in float16 (a wrapped optimizer)"
    )
    assert "(tf.function)" in result.detail
    assert "from 32768 to 16384 and the weights stay" in result.detail


def test_tensorflow_1_needs_no_function() -> None:
    result = judged(CODE, words(), *sessions(), *falls(), version="1.15.5")
    assert result.outcome == "pass"


def test_rewrite_that_changes_nothing_is_a_failure_with_what_that_version_needs() -> None:
    result = judged(CODE, words(), *sessions(0), *functions(0))
    assert result.outcome == "fail"
    (finding,) = result.findings
    assert finding.headline == "AMP is on in TensorFlow 2.15.1 and changes nothing"
    assert "all 5 convolutions" in finding.message
    assert finding.remedy is not None and "mixed_float16" in finding.remedy.text
    first = judged(CODE, words(), *sessions(0), version="1.15.5").findings[0]
    assert first.remedy is not None and "auto_mixed_precision=2" in first.remedy.commands[0]


def test_one_way_that_does_nothing_is_told_beside_one_that_engages() -> None:
    result = judged(CODE, words(), *sessions(5), *functions(0))
    assert result.outcome == "fail"
    assert "tf.function" in result.findings[0].message
    assert "wrapped" not in result.findings[0].message


def test_switch_of_the_rewrite_that_is_set_is_named() -> None:
    switch = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_REMOVE"
    (finding,) = judged(CODE, words(are_set=(f"{switch}=Conv2D",)), *sessions(0)).findings
    assert f"{switch}=Conv2D" in finding.message
    assert finding.remedy is not None and finding.remedy.commands == [f"unset {switch}"]


@pytest.mark.parametrize("capability", ["6.1", "3.7"])
def test_gpu_before_volta_is_not_applicable(capability: str) -> None:
    result = judged(CODE, words(compute_capability=capability), *sessions(0), *functions(0))
    assert result.outcome == "skipped"
    assert capability in reason(result) and "not applicable" in reason(result)


def test_unknown_capability_does_not_excuse() -> None:
    assert judged(CODE, words(compute_capability=""), *sessions(0)).outcome == "fail"
    assert judged(CODE, words(compute_capability="odd"), *sessions(0)).outcome == "fail"


HIDDEN = {"convolutions": 0, "half_convolutions": 0, "products": 0, "half_products": 0}


@pytest.mark.parametrize(
    ("trials", "told"),
    [
        (sessions(0, **HIDDEN, xla_nodes=2), "XLA compiled the step"),
        (sessions(0, **HIDDEN), "no convolution in it"),
        (sessions(0, places=["CPU"]), "ran on the CPU"),
        ((step("session", 5), step("session off", 5, control=True)), "with the rewrite off, too"),
        ((step("session", 5), bad("session off", "error", "E: x", control=True)), "did not run"),
        ((step("session", 5),), "did not run"),
        ((bad("session", "error", "E: no kernel"),), "no kernel"),
        ((bad("session", "timeout", "not done"), step("session off", control=True)), "not done"),
    ],
)
def test_what_nobody_can_tell_is_no_failure(trials: tuple[Any, ...], told: str) -> None:
    result = judged(CODE, words(), *trials)
    assert result.outcome == "could-not-run"
    assert told in reason(result)


def test_step_that_fails_with_amp_alone_is_a_failure() -> None:
    trials = (bad("session", "error", "InternalError: cuDNN"), step("session off", control=True))
    result = judged(CODE, words(), *trials)
    assert result.outcome == "fail"
    assert "InternalError: cuDNN" in result.findings[0].message


def test_wrapping_that_a_heeded_variable_forbids_is_no_failure() -> None:
    name = "TF_ENABLE_AUTO_MIXED_PRECISION"
    clash = bad("session", "error", "RuntimeError: the variable asks for it already")
    trials = (clash, step("session off", control=True))
    result = judged(CODE, words((name,), (f"{name}=1",)), *trials, version="1.15.5+nv22.12")
    assert result.outcome == "skipped"
    assert "excludes wrapping" in reason(result)
    assert judged(CODE, words((), (f"{name}=1",)), *trials).outcome == "fail"
    assert judged(CODE, words((name,), (f"{name}=0",)), *trials).outcome == "fail"


def test_version_without_the_rewrite_is_not_applicable() -> None:
    old = bad("session", "not-supported", "this TensorFlow has no such function")
    result = judged(CODE, words(), old, step("session off", control=True), version="1.12.0")
    assert result.outcome == "skipped"
    assert "no such function" in reason(result)


def test_version_that_lost_one_way_is_judged_by_the_other() -> None:
    old = bad("session", "not-supported", "no such function")
    trials = (old, step("session off", control=True), *functions())
    assert judged(CODE, words(), *trials).outcome == "pass"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"scale_after": 32768.0}, "stays at 32768"),
        ({"scale_after": 65536.0}, "stays at"),
        ({"scale_after": 0.0}, "stays at"),
        ({"weights_changed": True}, "into the weights"),
        ({"next_step_changed": False}, "no step any more"),
    ],
)
def test_loss_scale_that_does_not_do_its_work(changes: dict[str, Any], told: str) -> None:
    result = judged(CODE, words(), *sessions(), *falls(**changes))
    assert result.outcome == "fail"
    assert told in result.findings[0].message
    assert result.findings[0].remedy is not None


def test_overflow_that_was_none_says_nothing_of_the_loss_scale() -> None:
    scale, _ = falls(weights_changed=True)
    kept = step("loss scale off", control=True, weights_changed=False)
    result = judged(CODE, words(), *sessions(), scale, kept)
    assert result.outcome == "pass"
    assert "loss scale" not in result.detail


# Without a GPU


CPU: dict[str, Any] = {"device": "cpu", "gpus": []}
MADE_UP = (step("made-up GPU", 5), step("made-up GPU off", control=True))


def test_cpu_engages_by_bfloat16() -> None:
    bfloat16 = step("bfloat16", 5, types=["bfloat16"])
    result = judged(CODE, words(), *sessions(0), *falls(), *functions(0), bfloat16, *MADE_UP, **CPU)
    assert result.outcome == "pass"
    assert "5 of 5 convolutions and 3 of 3 products in bfloat16, on the CPU" in result.detail
    assert "loss scale" in result.detail


def test_bfloat16_that_is_there_without_it_too_does_not_count() -> None:
    trials = (step("function", 0), step("function off", 5, control=True))
    result = judged(CODE, words(), *trials, step("bfloat16", 5), **CPU)
    assert result.outcome == "could-not-run"


def test_no_gpu_could_not_run_and_says_what_a_made_up_one_would_get() -> None:
    result = judged(CODE, words(), *sessions(0), *MADE_UP, version="1.15.5", **CPU)
    assert result.outcome == "could-not-run"
    assert "no GPU" in reason(result) and "made-up one it would put 5 of 5" in reason(result)
    plain = judged(CODE, words(), *sessions(0), version="1.15.5", **CPU)
    assert plain.outcome == "could-not-run" and "made-up" not in reason(plain)


def test_build_for_the_cpu_is_not_applicable() -> None:
    made = words(cuda_build=False)
    result = judged(CODE, made, *sessions(0), *MADE_UP, version="1.15.5", **CPU)
    assert result.outcome == "skipped"
    assert "without CUDA" in reason(result)


def test_xla_hides_on_a_cpu_too() -> None:
    result = judged(CODE, words(cuda_build=False), *sessions(0, **HIDDEN, xla_nodes=2), **CPU)
    assert result.outcome == "could-not-run"
    assert "XLA" in reason(result)


@pytest.mark.parametrize("outcome", ["not-run", "timeout", "crashed", "error", "busy"])
def test_run_that_came_to_nothing(outcome: str) -> None:
    result = judge(seen(run(outcome=outcome, reason="why not")), CODE, "acceleration")
    assert result.outcome == "could-not-run" and "why not" in reason(result)


def test_target_without_tensorflow_is_not_applicable() -> None:
    result = judge(seen(), CODE, "acceleration")
    assert result.outcome == "skipped" and "no TensorFlow" in reason(result)


HOSTILE: list[Any] = [True, -1, 1e308, "\x1b[31mred", ["\x1b]0;x\x07"], "nan", []]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_hostile_values_are_judged_without_an_error(value: Any, device: str) -> None:
    names = ("convolutions", "half_convolutions", "types", "places", "xla_nodes")
    hostile: dict[str, Any] = dict.fromkeys(names, value)
    scale = falls(scale_before=value, scale_after=value, weights_changed=value)
    told = trial("variables", compute_capability=value, known=value, set=value, cuda_build=value)
    trials = (told, *sessions(0, **hostile), *scale, step("bfloat16", 5, **hostile))
    for one in all_checks():
        if "amp-graph" in one.systems:
            result = judged(one.code, *trials, device=device)
            assert "failed unexpectedly" not in reason(result)
