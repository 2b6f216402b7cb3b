"""Mixed precision on real frameworks, on the CPU (opt-in: pytest -m slow).

Engaged for real: Keras's policies, torch.autocast and the graph rewrite for bfloat16, GradScaler. What does
nothing, or fails, is a real framework with a function replaced.
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
AMP = "TF_ENABLE_AUTO_MIXED_PRECISION"


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
    "loss scale of the rewrite that spoils the weights": (
        "ACC-001", "tensorflow-1.15", "amp_graph",
        """
import tensorflow as tf
from importlib import import_module
scale = import_module("tensorflow.python.training.experimental.loss_scale")
scale.DynamicLossScale.update = lambda self, grads: (tf.no_op(), tf.constant(True))
""",
        "lets an overflow into the weights",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_broken_framework_is_found(what: str, tmp_path: Path) -> None:
    code, target, module, before, words = BROKEN[what]
    found = judged(code, target, module, tmp_path, before).findings[0]
    assert words in found.message


@KERAS
def test_bfloat16_of_the_rewrite_engages_on_the_cpu(target: str, tmp_path: Path) -> None:
    result = judged("ACC-001", target, "amp_graph", tmp_path)
    assert result.outcome == "pass", result
    assert "5 of 5 convolutions and 3 of 3 products in bfloat16" in result.detail
    assert "from 32768 to 16384 and the weights stay" in result.detail


def test_xla_hides_the_types_of_the_rewrite(tmp_path: Path) -> None:
    flags = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"
    result = judged("ACC-001", "tensorflow-2.15", "amp_graph", tmp_path, TF_XLA_FLAGS=flags)
    assert result.outcome == "could-not-run" and "XLA compiled the step" in str(result)


@pytest.mark.parametrize("target", ["tensorflow-1.15", "tensorflow-2.15"])
def test_variable_is_tried_in_a_process_of_its_own(target: str, tmp_path: Path) -> None:
    """As on a GPU, run on the CPU, where the variable can have no effect."""
    run = made(target, "amp_graph", tmp_path, device="gpu", **{AMP: "1"})
    alone = {one.name: one for one in run.trials}["variable"]
    assert alone.outcome == "ok" and alone.evidence["asked"] == [f"{AMP}=1"]
    assert (alone.evidence["convolutions"], alone.evidence["half_convolutions"]) == (5, 0)
