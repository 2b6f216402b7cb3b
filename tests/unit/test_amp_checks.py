"""Mixed precision: each state of ACC-001, ACC-003 and ACC-004, from made-up runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from amp_runs import (
    CODES,
    CPU,
    GRAPH,
    KERAS,
    TORCH,
    judged,
    keras,
    reason,
    rewritten,
    run,
    scaler,
    step,
    torch,
    unscaled,
    variables,
    ways,
)
from h100 import ADDRESSES, gpu, nvml
from judged import only
from system_runs import result, seen, trial
from targets import judge, replace

BOTH = pytest.mark.parametrize(
    ("system", "trials", "main", "control"),
    [(KERAS, keras, "mixed_float16", "float32"), (TORCH, torch, "autocast", "enabled=False")],
    ids=["keras", "torch"],
)
AMP = "TF_ENABLE_AUTO_MIXED_PRECISION"
NVIDIA = "1.15.5+nv22.12"


def put(trials: list[Any], *others: Any) -> list[Any]:
    """The trials, with those of the same name in place of them."""
    names = {one.name: one for one in others}
    return [names.get(one.name, one) for one in trials]


# By API


def test_keras_engaged_says_what_is_in_half_and_how_the_scale_fell() -> None:
    result = judged(KERAS, *keras())
    assert result.outcome == "pass"
    assert result.detail == (
        "TensorFlow 2.15.1: mixed_float16: 3 of 3 convolutions and 3 of 3 products in 16 bits, loss scale "
        "32768 to 16384 at an overflow, which the weights do not see; mixed_bfloat16: 3 of 3 convolutions "
        "and 3 of 3 products in 16 bits"
    )
    assert judged(KERAS, *keras(), **CPU).detail.endswith(", on the CPU")


def test_torch_engaged_names_the_type() -> None:
    result = judged(TORCH, *torch())
    assert result.outcome == "pass"
    assert "PyTorch 2.4.0: autocast to float16: 3 of 3 convolutions" in result.detail
    assert "GradScaler: loss scale 1.09951e+12 to 5.49756e+11" in result.detail


@BOTH
def test_nothing_in_half_is_a_failure(system: str, trials: Any, main: str, control: str) -> None:
    found = only(judged(system, *trials(half=0)))
    assert found.level == "fail"
    assert found.headline == f"{main} is on and nothing is computed in 16 bits"
    assert [one.value.partition(":")[0] for one in found.evidence] == [f"{control} (control)", main]
    part = put(trials(), step(main, 3, convolutions_half=0))[:2]
    assert "no convolution is computed in 16 bits" in only(judged(system, *part)).message


@BOTH
def test_what_proves_nothing_could_not_run(
    system: str, trials: Any, main: str, control: str
) -> None:
    for trial_, why in (
        (step(control, 2, control=True), f"the control, {control}, computes in 16 bits, too"),
        (trial(control, "error", "boom", control=True), f"{control}, did not run: boom"),
        (trial(main, "timeout", "not done within 30 s"), "not done within 30 s"),
        (trial(main, "out-of-memory", "no memory"), "no memory"),
        (step(main, convolutions="three", products=["3"]), "no convolution and no product"),
    ):
        result = judged(system, *put(trials(), trial_))
        assert result.outcome == "could-not-run" and why in reason(result)
    died = judged(system, trials()[0], outcome="crashed", reason="its process was killed")
    assert died.outcome == "could-not-run" and "its process was killed" in reason(died)
    assert judged(system, *[one for one in trials() if one.name != control]).outcome == (
        "could-not-run"
    )


@BOTH
def test_step_that_fails_in_half_alone_is_a_failure_on_a_gpu(
    system: str, trials: Any, main: str, control: str
) -> None:
    broken = put(trials(), trial(main, "error", "CUDNN_STATUS_NOT_SUPPORTED"))
    assert "it fails: CUDNN_STATUS_NOT_SUPPORTED." in only(judged(system, *broken)).message
    assert judged(system, *broken, **CPU).outcome == "could-not-run"
    both = put(broken, trial(control, "error", "cuDNN is broken", control=True))
    assert judged(system, *both).outcome == "could-not-run"


@BOTH
def test_version_without_it_is_not_applicable(
    system: str, trials: Any, main: str, control: str
) -> None:
    result = judged(system, *put(trials(), trial(main, "not-supported", "came with 1.10")))
    assert result.outcome == "skipped" and "came with 1.10" in reason(result)
    gone = judged(system, outcome="not-applicable", reason="no policies before 2.4")
    assert gone.outcome == "skipped" and "no policies" in reason(gone)


def test_bfloat16_that_does_not_run_here_is_no_failure() -> None:
    result = judged(KERAS, *put(keras(), trial("mixed_bfloat16", "error", "no kernel")))
    assert result.outcome == "pass"
    assert "mixed_bfloat16 does not run here: no kernel" in result.detail
    assert only(judged(KERAS, *keras(bfloat=0))).headline.startswith("mixed_bfloat16 is on")


def test_keras_without_a_loss_scale_is_a_warning() -> None:
    found = only(judged(KERAS, *put(keras(), step("mixed_float16", 3, moved_by_step=True))))
    assert found.level == "warn" and found.headline == "float16 without a loss scale"


@BOTH
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"moved_by_overflow": True}, "an overflow gets into the weights"),
        ({"scale_after_overflow": 2.0**41}, "the loss scale stays at"),
        ({"moved_by_step": False}, "nothing is learnt"),
    ],
)
def test_loss_scale_that_does_not_hold_is_a_failure(
    system: str, trials: Any, main: str, control: str, more: Any, words: str
) -> None:
    found = only(judged(system, *trials(**more)))
    assert found.level == "fail" and words in found.message


def test_gradscaler_that_shows_nothing_could_not_run() -> None:
    lacks = trial("GradScaler", "not-supported", "GradScaler for the CPU came with PyTorch 2.3")
    result = judged(TORCH, *put(torch(), lacks), **CPU)
    assert result.outcome == "pass" and lacks.reason in result.detail
    without = [
        msgspec.structs.replace(
            scaler(), evidence={k: v for k, v in scaler().evidence.items() if k != lost}
        )
        for lost in ("moved_by_overflow", "scale_after_overflow")
    ]
    for one in (trial("GradScaler", "error", "boom"), unscaled(moved_by_overflow=False), *without):
        assert judged(TORCH, *put(torch(), one)).outcome == "could-not-run"


@pytest.mark.parametrize(
    ("system", "version", "words"),
    [
        (KERAS, "2.15.1", "keras==2.15.*"),
        (KERAS, "2.21.0", "keras>=3.0"),
        (KERAS, "not a version", "keras"),
        (TORCH, "2.4.0+cu124", "torch==2.4.0"),
    ],
)
def test_remedy_is_what_that_version_needs(system: str, version: str, words: str) -> None:
    trials = keras(half=0) if system == KERAS else torch(half=0)
    found = only(judged(system, *trials, framework_version=version))
    assert found.remedy is not None and words in " ".join(found.remedy.commands)


def test_target_without_the_framework_is_not_applicable() -> None:
    for system, code in CODES.items():
        assert result(code, asked=system).outcome == "skipped"


# By graph rewrite


def test_rewrite_engaged_says_how_much_is_in_half() -> None:
    result = judged(GRAPH, variables(), *ways("session"), *ways("function"))
    assert result.outcome == "pass"
    assert "5 of 5 convolutions and 3 of 3 products in 16 bits (AMP of a wrapped" in result.detail
    assert "(AMP of tf.function)" in result.detail


def test_rewrite_that_changes_nothing_is_a_failure_with_what_that_version_needs() -> None:
    found = only(judged(GRAPH, variables(), *ways("session", 0), *ways("function", 0)))
    assert found.headline == "AMP of a wrapped optimizer is on and nothing is computed in 16 bits"
    assert "0 of 5 convolutions" in found.message
    assert found.remedy is not None and "mixed_float16" in found.remedy.text
    first = only(judged(GRAPH, variables(), *ways("session", 0), framework_version="1.15.5"))
    assert first.remedy is not None and "auto_mixed_precision=2" in first.remedy.commands[0]
    one = only(judged(GRAPH, variables(), *ways("session"), *ways("function", 0)))
    assert "tf.function" in one.message and "wrapped" not in one.message


HIDDEN = dict.fromkeys(("convolutions", "half_convolutions", "products", "half_products"), 0)
OFF = rewritten("session off", control=True)


@pytest.mark.parametrize(
    ("trials", "why"),
    [
        (ways("session", 0, **HIDDEN, xla_nodes=2), "XLA compiled the step"),
        (ways("session", 0, **HIDDEN), "no convolution and no product"),
        (ways("session", 0, places=["CPU"]), "ran on the CPU"),
        ((rewritten("session", 5), rewritten("session off", 5, True)), "computes in 16 bits, too"),
        ((rewritten("session", 5), trial("session off", "error", "E: x", True)), "did not run"),
        ((rewritten("session", 5),), "did not run"),
        ((trial("session", "error", "E: no kernel"),), "no kernel"),
        ((trial("session", "timeout", "not done"), OFF), "not done"),
    ],
)
def test_rewrite_that_does_not_show_is_no_failure(trials: tuple[Any, ...], why: str) -> None:
    result = judged(GRAPH, variables(), *trials)
    assert result.outcome == "could-not-run" and why in reason(result)


def test_step_that_fails_with_the_rewrite_alone_is_a_failure() -> None:
    result = judged(GRAPH, variables(), trial("session", "error", "InternalError: cuDNN"), OFF)
    assert "InternalError: cuDNN" in only(result).message
    clash = trial("session", "error", "RuntimeError: the variable asks for it already")
    excluded = judged(GRAPH, variables(f"{AMP}=1"), clash, OFF, framework_version=NVIDIA)
    assert excluded.outcome == "skipped" and "excludes wrapping" in reason(excluded)
    assert judged(GRAPH, variables(f"{AMP}=0"), clash, OFF).outcome == "fail"


def test_version_without_the_rewrite_is_not_applicable() -> None:
    old = trial("session", "not-supported", "this TensorFlow has no such function")
    result = judged(GRAPH, variables(), old, OFF, framework_version="1.12.0")
    assert result.outcome == "skipped" and "no such function" in reason(result)
    assert judged(GRAPH, variables(), old, OFF, *ways("function")).outcome == "pass"


def test_rewrite_is_expected_on_gpus_that_have_tensor_cores_alone() -> None:
    both = (variables(), *ways("session", 0), *ways("function", 0))
    result = judged(GRAPH, *both, **CPU)
    assert result.outcome == "skipped" and "for GPUs" in reason(result)
    old = nvml([gpu(compute_capability="6.1")])
    snapshot = replace(seen(run(GRAPH, *both, gpus=[ADDRESSES[0]])), "machine", nvml=old)
    result = judge(snapshot, CODES[GRAPH], "acceleration")
    assert result.outcome == "skipped" and "compute capability 6.1" in reason(result)
