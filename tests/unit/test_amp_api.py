"""Mixed precision in Keras and PyTorch: each state of ACC-003 and ACC-004, from made-up runs."""

from __future__ import annotations

from typing import Any

import pytest
from amp_runs import (
    KERAS,
    TORCH,
    bad,
    finding,
    judged,
    keras,
    reason,
    run,
    scaler,
    seen,
    step,
    torch,
    unscaled,
)
from targets import judge

BOTH = pytest.mark.parametrize(
    ("system", "trials", "main", "control"),
    [(KERAS, keras, "mixed_float16", "float32"), (TORCH, torch, "autocast", "enabled=False")],
    ids=["keras", "torch"],
)


def put(trials: list[Any], *others: Any) -> list[Any]:
    """The trials, with those of the same name in place of them."""
    names = {one.name: one for one in others}
    return [names.get(one.name, one) for one in trials]


def test_keras_engaged_says_what_is_in_half_and_how_the_scale_fell() -> None:
    result = judged(KERAS, *keras())
    assert result.outcome == "pass"
    assert result.detail == (
        "TensorFlow 2.15.1: mixed_float16: 3 of 3 convolutions and 3 of 3 products in 16 bits, loss scale "
        "32768 to 16384 at an overflow, which the weights do not see; mixed_bfloat16: 3 of 3 convolutions "
        "and 3 of 3 products in 16 bits"
    )


def test_torch_engaged_names_the_type() -> None:
    result = judged(TORCH, *torch())
    assert result.outcome == "pass"
    assert result.detail.startswith(
        "PyTorch 2.4.0: autocast to float16: 3 of 3 convolutions and 3 of 3 products in 16 bits; "
        "GradScaler: loss scale 1.09951e+12 to 5.49756e+11"
    )


def test_on_the_cpu_it_is_said_and_that_autocast_for_cuda_is_off() -> None:
    trials = [*torch(), step("autocast for CUDA", 0, asked="float16")]
    result = judged(TORCH, *trials, device="cpu", gpus=[])
    assert result.outcome == "pass"
    assert result.detail.endswith("; autocast for CUDA switches itself off here, on the CPU")
    assert judged(KERAS, *keras(), device="cpu", gpus=[]).detail.endswith(", on the CPU")


@BOTH
def test_nothing_in_half_is_a_failure(system: str, trials: Any, main: str, control: str) -> None:
    found = finding(judged(system, *trials(half=0)))
    assert found.level == "fail"
    assert found.headline == f"{main} is on and nothing is computed in 16 bits"
    assert "0 of 3 convolutions and 0 of 3 products" in found.message
    assert [one.value.partition(":")[0] for one in found.evidence] == [f"{control} (control)", main]


@BOTH
def test_convolutions_alone_that_stay_in_32_bits_are_a_failure(
    system: str, trials: Any, main: str, control: str
) -> None:
    found = finding(judged(system, *put(trials(), step(main, 3, convolutions_half=0))[:2]))
    assert "no convolution is computed in 16 bits" in found.message


@BOTH
def test_control_in_half_proves_nothing(system: str, trials: Any, main: str, control: str) -> None:
    result = judged(system, *put(trials(), step(control, 2, control=True)))
    assert result.outcome == "could-not-run"
    assert f"the control, {control}, computes in 16 bits, too" in reason(result)


@BOTH
def test_control_that_failed_proves_nothing(
    system: str, trials: Any, main: str, control: str
) -> None:
    result = judged(system, *put(trials(), bad(control, "error", "boom", control=True)))
    assert result.outcome == "could-not-run"
    assert f"the control, {control}, did not run: boom" in reason(result)
    without = [one for one in trials() if one.name != control]
    assert judged(system, *without).outcome == "could-not-run"


@BOTH
def test_step_that_fails_in_half_alone_is_a_failure_on_a_gpu(
    system: str, trials: Any, main: str, control: str
) -> None:
    broken = put(trials(), bad(main, "error", "CUDNN_STATUS_NOT_SUPPORTED"))
    if system == TORCH:
        broken = [*broken[:2], unscaled(), scaler()]
    found = finding(judged(system, *broken))
    assert found.level == "fail"
    assert found.message.endswith("it fails: CUDNN_STATUS_NOT_SUPPORTED.")
    on_cpu = judged(system, *broken, device="cpu", gpus=[])
    assert on_cpu.outcome == "could-not-run"
    both = put(broken, bad(control, "error", "cuDNN is broken", control=True))
    assert judged(system, *both).outcome == "could-not-run"


@BOTH
@pytest.mark.parametrize("outcome", ["timeout", "out-of-memory"])
def test_no_answer_is_no_failure(
    system: str, trials: Any, main: str, control: str, outcome: str
) -> None:
    result = judged(system, *put(trials(), bad(main, outcome, "not done within 30 s")))
    assert result.outcome == "could-not-run"
    assert "not done within 30 s" in reason(result)


@BOTH
def test_trial_that_was_not_reached_names_the_runs_reason(
    system: str, trials: Any, main: str, control: str
) -> None:
    result = judged(system, trials()[0], outcome="crashed", reason="its process was killed")
    assert result.outcome == "could-not-run"
    assert "its process was killed" in reason(result)


@BOTH
def test_version_without_it_is_not_applicable(
    system: str, trials: Any, main: str, control: str
) -> None:
    result = judged(system, *put(trials(), bad(main, "not-supported", "came with 1.10")))
    assert result.outcome == "skipped"
    assert "not applicable: " in reason(result) and "came with 1.10" in reason(result)


@BOTH
def test_nothing_seen_at_all_cannot_be_told(
    system: str, trials: Any, main: str, control: str
) -> None:
    hostile = step(main, 0, convolutions="three", products=["3"])
    result = judged(system, *put(trials(), hostile))
    assert result.outcome == "could-not-run"
    assert "no convolution and no product was seen" in reason(result)


@BOTH
def test_run_without_trials_says_why(system: str, trials: Any, main: str, control: str) -> None:
    gone = judged(system, outcome="not-applicable", reason="no policies before 2.1")
    assert gone.outcome == "skipped"
    assert "no policies before 2.1" in reason(gone)
    busy = judged(system, outcome="busy", reason="GPU 0: another process uses it")
    assert busy.outcome == "could-not-run"


def test_bfloat16_that_does_not_run_here_is_told_and_no_failure() -> None:
    trials = put(keras(), bad("mixed_bfloat16", "error", "no kernel for Conv2D of bfloat16"))
    result = judged(KERAS, *trials)
    assert result.outcome == "pass"
    assert "mixed_bfloat16 does not run here: no kernel for Conv2D of bfloat16" in result.detail
    assert finding(judged(KERAS, *keras(bfloat=0))).headline.startswith("mixed_bfloat16 is on")


def test_keras_without_a_loss_scale_is_a_warning() -> None:
    found = finding(judged(KERAS, *put(keras(), step("mixed_float16", 3, moved_by_step=True))))
    assert found.level == "warn"
    assert found.headline == "float16 without a loss scale"
    assert "LossScaleOptimizer" in (found.remedy.text if found.remedy else "")


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
    found = finding(judged(system, *trials(**more)))
    assert found.level == "fail"
    assert words in found.message


def test_first_step_that_overflows_by_itself_is_no_failure() -> None:
    falls = {"moved_by_step": False, "scale_after_step": 16384.0, "scale_after_overflow": 8192.0}
    assert judged(KERAS, *keras(**falls)).outcome == "pass"
    assert judged(TORCH, *torch(moved_by_step=False, scale_after_step=4.0)).outcome == "pass"


def test_overflow_that_is_none_proves_nothing_of_gradscaler() -> None:
    trials = put(torch(), unscaled(moved_by_overflow=False))
    result = judged(TORCH, *trials)
    assert result.outcome == "could-not-run"
    assert "without GradScaler the overflow left the weights alone, too" in reason(result)


def test_gradscaler_that_this_version_lacks_leaves_autocast_judged() -> None:
    lacks = "GradScaler for the CPU came with PyTorch 2.3"
    trials = put(torch(), bad("GradScaler", "not-supported", lacks))
    result = judged(TORCH, *trials, device="cpu", gpus=[])
    assert result.outcome == "pass"
    assert lacks in result.detail
    raised = judged(TORCH, *put(torch(), bad("GradScaler", "error", "boom")))
    assert raised.outcome == "could-not-run"


def test_evidence_that_is_missing_is_no_pass() -> None:
    for lost in ("moved_by_overflow", "scale_after_overflow"):
        (one,) = [scaler()]
        evidence = {key: value for key, value in one.evidence.items() if key != lost}
        trials = put(torch(), type(one)(name=one.name, outcome="ok", evidence=evidence))
        assert judged(TORCH, *trials).outcome == "could-not-run"


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("2.1.4", "2.4 or later"),
        ("2.15.1", "keras==2.15.*"),
        ("2.21.0", "set_dtype_policy"),
        ("not a version", "Keras"),
    ],
)
def test_remedy_is_what_that_tensorflow_needs(version: str, words: str) -> None:
    found = finding(judged(KERAS, *keras(half=0), framework_version=version))
    assert found.remedy is not None
    assert words in " ".join([found.remedy.text, *found.remedy.commands])


@pytest.mark.parametrize(("version", "words"), [("1.6.0", "1.10"), ("2.4.0+cu124", "torch==2.4.0")])
def test_remedy_is_what_that_pytorch_needs(version: str, words: str) -> None:
    found = finding(judged(TORCH, *torch(half=0), framework_version=version))
    assert found.remedy is not None
    assert words in " ".join(found.remedy.commands)


def test_target_without_the_framework_is_not_applicable() -> None:
    for code in ("ACC-003", "ACC-004", "ACC-005"):
        assert judge(seen(), code, "acceleration").outcome == "skipped"
    both = seen(run(KERAS, *keras()), run(TORCH, *torch()))
    assert judge(both, "ACC-003", "acceleration").outcome == "pass"
    assert judge(both, "ACC-004", "acceleration").outcome == "pass"


HOSTILE = [-1, 10**400, float("inf"), "3", [], ["\x1b[31m"], True, 2**63]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: str(value)[:8])
def test_hostile_values_are_judged_all_the_same(value: Any) -> None:
    for system, trials in ((KERAS, keras()), (TORCH, torch())):
        for one in trials:
            for key in one.evidence:
                changed = type(one)(
                    name=one.name,
                    control=one.control,
                    outcome="ok",
                    evidence={**one.evidence, key: value},
                )
                result = judged(system, *put(trials, changed))
                assert "crashed" not in " ".join(found.message for found in result.findings)
