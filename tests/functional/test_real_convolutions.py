"""Convolutions in real frameworks, on the CPU (opt-in: pytest -m slow).

A CPU has neither cuDNN nor TF32. What is run for real is the arithmetic, each framework's way of doing it,
and the reading of its bits. TF32 is simulated: the factors are rounded to ten fraction bits before the
framework gets them, where it was not told to leave that.
"""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cli import envcheck, environment
from convolved import matches, one
from msgspec import convert
from processes import PATIENCE
from real_targets import real_target
from system_records import Reported

import envcheck as package
from envcheck.checks.acceleration.tf32_convolutions import _read
from envcheck.facts.acceleration import SystemRun, SystemTrial
from envcheck.findings.model import Finding, Passed, Unjudged

pytestmark = pytest.mark.slow

ROOT = Path(package.__file__).parents[1]
TARGETS = {
    "torch": "torch",
    "tensorflow-1.15": "tensorflow",
    "tensorflow-2.15": "tensorflow",
    "tensorflow-newest": "tensorflow",
    "jax": "jax",
}
OVERRIDE = "NVIDIA_TF32_OVERRIDE=0"

# A system's process as its runner starts it, but that {setup} comes first.
PROCESS = """
import sys
sys.path.insert(0, {root!r})
from envcheck.collector.worker import child
from envcheck.collector.systems.shared.convolving import reference as convolutions, tf32 as tf32_convolutions
from envcheck.collector.systems import {module} as system
{setup}
child.main("envcheck.collector.systems.running.work", {params!r})
"""

# The factors as TF32 takes them in, wherever the framework was not told to keep FP32; and the two ranks in
# this process, one after the other, of which the one with the override keeps FP32.
SIMULATED = """
import array, json
from envcheck.collector import framework
from envcheck.collector.systems.running import ranks
Side = vars(system)[{side!r}]
words, set_tf32 = Side.words, Side.set_tf32
allowed = [True]
def rounded(data):
    made = array.array("I", data)
    for place, word in enumerate(made):
        made[place] = ((word + (1 << 12)) >> 13) << 13
    return made.tobytes()
def simulated(self, shape, image, filter_):
    if allowed[0]:
        image, filter_ = rounded(image), rounded(filter_)
    return words(self, shape, image, filter_)
def switched(self, on):
    set_tf32(self, on)
    allowed[0] = on
Side.words, Side.set_tf32 = simulated, switched
class Here:
    def __init__(self, number, answer):
        self.number, self.answer, self.reason = number, json.loads(json.dumps(answer)), ""
def here(params, number, seconds, environ, more, tell):
    module, problem = framework.load(system.FRAMEWORK)
    tell.run(framework_version=module.__version__)
    answers = []
    for rank in range(number):
        allowed[0] = not environ(rank)
        answers.append(Here(rank, system.rank(module, dict(params, **more(rank)))))
    return answers
ranks.run = here
"""
SIDES = {"torch": "TorchSide", "tensorflow": "TensorFlowSide", "jax": "JaxSide"}

# A library that gets one number of a result wrong: in PyTorch, and in TensorFlow 2.
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


def made(target: str, system: str, setup: str = "", **variables: str) -> SystemRun:
    """What a system's process tells, in that target, on the CPU."""
    name = TARGETS[target]
    module = f"{system}_{name}"
    params = {"device": "cpu", "gpus": [], "memory_mib": None, "seconds": 60.0, "root": str(ROOT)}
    params |= {"libraries": {}, "module": module}
    script = PROCESS.format(
        root=str(ROOT),
        module=module,
        setup=setup,
        params=json.dumps(params | {"libraries": {}, "module": module}),
    )
    argv = [str(real_target(target) / "bin" / "python"), "-B", "-c", script]
    done = subprocess.run(
        argv, capture_output=True, env=environment(**variables), timeout=PATIENCE, check=False
    )
    heard = Reported(done.stdout)
    assert heard.done, done.stderr.decode("utf-8", "replace")[-2000:]
    trials = convert(heard.trials, list[SystemTrial])
    told: dict[str, Any] = {"system": system, "framework": name, "device": "cpu", "outcome": "ok"}
    return convert(told | heard.run | {"trials": trials}, SystemRun)


@cache
def plain(target: str, system: str) -> SystemRun:
    return made(target, system)


def trial(run: SystemRun, name: str) -> SystemTrial:
    (found,) = (one_ for one_ in run.trials if one_.name == name)
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_all_convolutions_are_exact(target: str) -> None:
    run = plain(target, "cudnn")
    ok = [one_ for one_ in run.trials if one_.outcome == "ok" and not one_.control]
    names = {one_.name for one_ in ok}
    plain_ones = {"2D FP32", "3D FP32", "2D FP32, stride 1", "2D FP32, 24-bit numbers"}
    assert plain_ones | {"2D FP16", "3D FP16"} <= names
    assert "2D TF32" not in names
    if target != "tensorflow-1.15":
        assert {"2D BF16", "3D BF16"} <= names
    for one_ in ok:
        assert one_.evidence["differ"] == 0, one_
        assert one_.evidence["far"] == 0
    assert 0 < float(str(trial(run, "2D FP32, 24-bit numbers").evidence["share"])) < 1
    assert {one_.outcome for one_ in run.trials} <= {"ok", "not-supported"}
    assert trial(run, "cuDNN").outcome == "not-supported"


@pytest.mark.parametrize("target", TARGETS)
def test_a_cpu_s_convolutions_are_not_called_cudnn_s(target: str) -> None:
    verdict = one("ACC-011", plain(target, "cudnn"))
    assert isinstance(verdict, Unjudged) and verdict.outcome == "skipped"
    assert matches("not applicable: .*, on the CPU", verdict)


def test_pytorch_names_what_ran_it() -> None:
    evidence = trial(plain("torch", "cudnn"), "2D FP32").evidence
    assert evidence["cudnn"] == 0
    assert isinstance(evidence["operations"], list) and "aten::conv2d" in evidence["operations"]


@pytest.mark.parametrize("target", WRONG)
def test_a_wrong_number_in_one_type_is_found(target: str) -> None:
    run = made(target, "cudnn", WRONG[target])
    verdict = one("ACC-011", run)
    assert isinstance(verdict, Finding) and verdict.level == "fail"
    assert "3D FP32" in verdict.message and "2D" not in verdict.message
    assert "forward, place 3" in verdict.message or target != "torch"
    assert trial(run, "3D FP32").evidence["differ_in"] == ["forward"]


def test_a_convolution_that_fails_is_told_with_its_cause() -> None:
    verdict = one("ACC-011", made("torch", "cudnn", FAILING))
    assert isinstance(verdict, Finding) and matches("cuDNN does not start", verdict)
    assert "2D FP16" in verdict.message and "3D" not in verdict.message


@pytest.mark.parametrize("target", TARGETS)
def test_a_cpu_s_fp32_is_read_as_not_tf32(target: str) -> None:
    run = plain(target, "tf32")
    assert _read(trial(run, "default")) == {"FP32"}
    assert _read(trial(run, OVERRIDE)) == {"FP32"}, "a process of its own"
    verdict = one("ACC-006", run)
    assert isinstance(verdict, Unjudged) and verdict.outcome == "skipped"


@pytest.mark.parametrize("target", ["torch", "tensorflow-2.15", "tensorflow-newest", "jax"])
def test_simulated_tf32_is_engaged_and_each_control_is_without_it(target: str) -> None:
    setup = SIMULATED.format(side=SIDES[TARGETS[target]])
    run = made(target, "tf32", setup)
    assert [_read(trial(run, name)) for name in ("default", "switch on")] == [{"TF32"}] * 2
    assert [_read(trial(run, name)) for name in ("switch off", OVERRIDE)] == [{"FP32"}] * 2
    verdict = one("ACC-006", run)
    assert isinstance(verdict, Passed) and verdict.detail.endswith("on the CPU")
    assert f"{OVERRIDE} switches it off" in verdict.detail
    assert "Tensor Core" not in verdict.detail, "sums are rounded as a CPU does"


def test_the_switches_of_pytorch_are_those_of_its_version() -> None:
    run = plain("torch", "tf32")
    told = [trial(run, name).evidence["switch"] for name in ("default", "switch off", "switch on")]
    assert told[0] == told[2] != told[1]


def test_a_variable_of_the_user_s_is_evidence() -> None:
    run = made("jax", "tf32", JAX_DEFAULT_MATMUL_PRECISION="highest")
    assert trial(run, "default").evidence["environment"] == ["JAX_DEFAULT_MATMUL_PRECISION=highest"]


@pytest.mark.parametrize("target", ["torch", "tensorflow-1.15"])
def test_the_doctor_says_why_neither_was_run(target: str) -> None:
    arguments = ("--target", real_target(target), "--only", "cudnn,tf32", "--level", "deep")
    result = envcheck("doctor", *arguments, "--format", "json", timeout=PATIENCE)
    told = {one_["code"]: one_ for one_ in json.loads(result.stdout)["results"]}
    for code in ("ACC-006", "ACC-011"):
        words = json.dumps(told[code])
        assert told[code]["outcome"] in ("skipped", "could-not-run")
        assert "built without CUDA" in words or "no GPU" in words
