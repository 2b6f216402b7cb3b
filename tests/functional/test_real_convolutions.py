"""Convolutions in real frameworks, on the CPU, which has no cuDNN (opt-in: pytest -m slow)."""

from __future__ import annotations

from pathlib import Path

import pytest
import system_alone
from real_targets import real_target

from envcheck.facts.acceleration import SystemRun

pytestmark = pytest.mark.slow

TARGETS = {
    "torch": "torch",
    "tensorflow-1.15": "tensorflow",
    "tensorflow-2.15": "tensorflow",
    "tensorflow-newest": "tensorflow",
    "jax": "jax",
}
# A library that gets one number of a result wrong.
WRONG = {
    "torch": """
import torch
right = torch.nn.functional.conv3d
def wrong(*given, **named):
    made = right(*given, **named)
    made.data.view(-1)[3] += 1
    return made
torch.nn.functional.conv3d = wrong
""",
    "tensorflow-2.15": """
import tensorflow as tf
right = tf.nn.conv3d
tf.nn.conv3d = lambda *given, **named: right(*given, **named) + tf.one_hot(3, 8, dtype=given[0].dtype)
""",
}
FAILING = """
import torch
def failing(*given, **named):
    raise RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED")
torch.nn.functional.conv2d = failing
"""


def made(target: str, folder: Path, before: str = "") -> SystemRun:
    python = real_target(target) / "bin" / "python"
    run = system_alone.run(python, "cudnn", folder, before=before, framework=TARGETS[target])
    assert run.outcome == "ok", run
    return run


@pytest.mark.parametrize("target", TARGETS)
def test_all_convolutions_are_exact(target: str, tmp_path: Path) -> None:
    run = made(target, tmp_path)
    right = {one.name: one for one in run.trials if one.outcome == "ok" and not one.control}
    assert {"2D FP32", "3D FP32", "2D FP16", "3D FP16"} <= set(right)
    assert "2D TF32" not in right and {one.outcome for one in run.trials} <= {"ok", "not-supported"}
    for name in set(right) - {"cuDNN"}:
        assert right[name].evidence["differ"] == 0, right[name]
    answer = system_alone.judged("ACC-011", run)
    wanted = "fail" if target == "torch" else "could-not-run"  # it says that cuDNN did nothing
    assert answer.outcome == wanted, answer


@pytest.mark.parametrize("target", WRONG)
def test_wrong_number_in_one_type_is_found(target: str, tmp_path: Path) -> None:
    run = made(target, tmp_path, WRONG[target])
    (found,) = system_alone.judged("ACC-011", run).findings
    assert "wrong convolutions: 3D FP32" in found.message and "2D" not in found.message


def test_convolution_that_fails_has_its_cause(tmp_path: Path) -> None:
    run = made("torch", tmp_path, FAILING)
    (found,) = system_alone.judged("ACC-011", run).findings
    assert "CUDNN_STATUS_NOT_INITIALIZED" in found.message and "3D" not in found.message
