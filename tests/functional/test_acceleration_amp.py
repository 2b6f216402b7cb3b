"""Mixed precision on real frameworks, on the CPU (opt-in: pytest -m slow).

Engaged for real: Keras's policies, torch.autocast, GradScaler. What does nothing, or fails, is a real
framework with a function replaced.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import system_alone
from real_targets import real_target

from envcheck.facts.acceleration import SystemRun
from envcheck.findings.model import CheckResult

pytestmark = pytest.mark.slow

KERAS = pytest.mark.parametrize("target", ["tensorflow-2.15", "tensorflow-newest"])


def made(
    target: str, module: str, folder: Path, before: str = "", device: str = "cpu", **variables: str
) -> SystemRun:
    python = real_target(target) / "bin" / "python"
    framework = "torch" if target == "torch" else "tensorflow"
    return system_alone.run(python, module, folder, device, before, framework, **variables)


def judged(
    code: str, target: str, module: str, folder: Path, before: str = "", **variables: str
) -> CheckResult:
    return system_alone.judged(code, made(target, module, folder, before, **variables))


@KERAS
def test_keras_computes_in_half_and_its_loss_scale_falls(target: str, tmp_path: Path) -> None:
    result = judged("ACC-003", target, "amp_keras", tmp_path)
    assert result.outcome == "pass", result
    assert "mixed_float16: 3 of 3 convolutions and 3 of 3 products in 16 bits" in result.detail
    assert "loss scale 32768 to 16384 at an overflow" in result.detail
    assert result.detail.endswith(", on the CPU")


def test_torch_computes_in_bfloat16_and_skips_a_step_that_overflows(tmp_path: Path) -> None:
    result = judged("ACC-004", "torch", "amp_torch", tmp_path)
    assert result.outcome == "pass", result
    assert "autocast to bfloat16: 2 of 2 convolutions and 3 of 3 products" in result.detail
    assert "loss scale 1.09951e+12 to 5.49756e+11 at an overflow" in result.detail


def test_tensorflow_1_has_no_policies(tmp_path: Path) -> None:
    run = made("tensorflow-1.15", "amp_keras", tmp_path)
    assert run.outcome == "not-applicable" and "from TensorFlow 2.4 on" in run.reason


BROKEN = {
    "policy that is not heeded": (
        "ACC-003", "tensorflow-2.15", "amp_keras",
        "import tensorflow as tf\ntf.keras.mixed_precision.set_global_policy = lambda name: None",
        "0 of 3 convolutions and 0 of 3 products in 16 bits",
    ),
    "optimizer without a loss scale": (
        "ACC-003", "tensorflow-2.15", "amp_keras",
        """
import tensorflow as tf
def compile(self, optimizer, loss, plain=tf.keras.Model.compile):
    plain(self, optimizer=optimizer, loss=loss)
    self.optimizer = optimizer
tf.keras.Model.compile = compile
""",
        "without a loss scale",
    ),
    "autocast that does nothing": (
        "ACC-004", "torch", "amp_torch",
        "import contextlib, torch\ntorch.autocast = lambda *given, **more: contextlib.nullcontext()",
        "0 of 2 convolutions and 0 of 3 products",
    ),
    "GradScaler that steps at an overflow": (
        "ACC-004", "torch", "amp_torch",
        """
import torch
torch.amp.GradScaler.step = lambda self, optimizer: optimizer.step()
torch.amp.GradScaler.update = lambda self, new_scale=None: None
""",
        "an overflow gets into the weights",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_broken_framework_is_found(what: str, tmp_path: Path) -> None:
    code, target, module, before, words = BROKEN[what]
    found = judged(code, target, module, tmp_path, before).findings[0]
    assert words in found.message


@pytest.mark.parametrize("target", ["tensorflow-1.15", "tensorflow-2.15", "tensorflow-newest"])
def test_steps_of_the_rewrite_are_counted(target: str, tmp_path: Path) -> None:
    """As on a GPU, run on the CPU, where nothing is rewritten."""
    run = made(target, "amp_graph", tmp_path, device="gpu", TF_ENABLE_AUTO_MIXED_PRECISION="0")
    trials = {one.name: one for one in run.trials}
    assert trials["variables"].evidence["set"] == ["TF_ENABLE_AUTO_MIXED_PRECISION=0"]
    for name in ("session", "session off"):
        evidence = trials[name].evidence
        assert (evidence["convolutions"], evidence["half_convolutions"]) == (5, 0), name
