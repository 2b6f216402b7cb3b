"""Mixed precision by API on real frameworks, on the CPU (opt-in: pytest -m slow).

Engaged for real: Keras's policies, torch.autocast for bfloat16, GradScaler. What times a step on a GPU goes
through its paths with tiny steps. What does nothing, or fails, is a real framework with a function replaced.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from amp_runs import seen
from cli import envcheck, environment
from processes import PATIENCE
from real_targets import real_target
from targets import judge

import envcheck as package
from envcheck.facts.acceleration import SystemRun
from envcheck.findings.model import CheckResult

pytestmark = pytest.mark.slow

ROOT = Path(package.__file__).parents[1]
KERAS = pytest.mark.parametrize("target", ["tensorflow-2.15", "tensorflow-newest"])
SYSTEMS = {
    "amp_keras": "amp-keras",
    "amp_torch": "amp-torch",
    "amp_speed_torch": "amp-tensor-cores",
    "amp_speed_tensorflow": "amp-tensor-cores",
}
FRAMEWORKS = {name: "torch" if "torch" in name else "tensorflow" for name in SYSTEMS}

# A system, as its process runs it; {setup} comes before, {after} behind. Prints its records.
RUN = """
import json, sys
sys.path.insert(0, {root!r})
from envcheck.collector import framework
from envcheck.collector.systems.running import records
from envcheck.collector.systems import {module} as system
module, problem = framework.load(system.FRAMEWORK)
kept = records.KeptTrials()
{setup}
params = dict(device={device!r}, memory_mib=None, gpus=[], root={root!r}, module="{module}")
said = dict(outcome="ok", framework_version=module.__version__)
try:
    system.run(module, params, kept)
except records.NotApplicable as error:
    said.update(outcome="not-applicable", reason=str(error))
except records.CouldNotRun as error:
    said.update(outcome="not-run", reason=str(error))
said["trials"] = [records.trial_of(*one) for one in kept.trials]
{after}
print(json.dumps(said))
"""


def doctor(target: str, only: str, code: str) -> dict[str, Any]:
    """The check's result, where that system alone was asked for."""
    arguments = ("--target", real_target(target), "--only", only, "--level", "deep")
    result = envcheck("doctor", *arguments, "--format", "json", timeout=PATIENCE)
    found = {one["code"]: one for one in json.loads(result.stdout)["results"]}
    return dict(found[code])


def why(result: dict[str, Any]) -> str:
    return str(result.get("reason")) + str(result.get("unjudged"))


def ran(
    target: str, module: str, device: str = "cpu", setup: str = "", after: str = ""
) -> SystemRun:
    """The run as that target makes it."""
    script = RUN.format(
        root=str(ROOT), module=module, device=device, setup=setup, after=after or "pass"
    )
    done = subprocess.run(
        [str(real_target(target) / "bin" / "python"), "-B", "-c", script],
        capture_output=True,
        env=environment(),
        timeout=PATIENCE,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    said.update(system=SYSTEMS[module], framework=FRAMEWORKS[module], device=device)
    return msgspec.convert(said, SystemRun)


def judged(run: SystemRun, code: str) -> CheckResult:
    return judge(seen(run), code, "acceleration")


@KERAS
def test_keras_computes_in_half_and_its_loss_scale_falls(target: str) -> None:
    result = doctor(target, "amp-keras", "ACC-003")
    assert result["outcome"] == "pass", result
    assert "mixed_float16: 3 of 3 convolutions and 3 of 3 products in 16 bits" in result["detail"]
    assert "loss scale 32768 to 16384 at an overflow" in result["detail"]
    assert "mixed_bfloat16: 3 of 3 convolutions" in result["detail"]
    assert result["detail"].endswith(", on the CPU")


def test_tensorflow_1_has_no_policies() -> None:
    result = doctor("tensorflow-1.15", "amp-keras", "ACC-003")
    assert result["outcome"] == "skipped"
    assert "not applicable: TensorFlow 1.15.5: Keras has mixed policies from TensorFlow 2.1" in (
        why(result)
    )


def test_torch_computes_in_bfloat16_and_skips_a_step_that_overflows() -> None:
    result = doctor("torch", "amp-torch", "ACC-004")
    assert result["outcome"] == "pass", result
    assert (
        "autocast to bfloat16: 2 of 2 convolutions and 3 of 3 products in 16 bits"
        in (result["detail"])
    )
    assert "loss scale 1.09951e+12 to 5.49756e+11 at an overflow" in result["detail"]
    assert "autocast for CUDA switches itself off here, on the CPU" in result["detail"]


@KERAS
def test_policy_that_is_not_heeded_is_a_failure_and_the_users_comes_back(target: str) -> None:
    unheeded = """
module.keras.mixed_precision.set_global_policy = lambda name: None
"""
    result = judged(ran(target, "amp_keras", setup=unheeded), "ACC-003")
    assert result.outcome == "fail"
    assert "0 of 3 convolutions and 0 of 3 products in 16 bits" in result.findings[0].message
    after = "said['reason'] = module.keras.mixed_precision.global_policy().name"
    assert ran(target, "amp_keras", after=after).reason == "float32"


@KERAS
def test_optimizer_without_a_loss_scale_is_a_warning(target: str) -> None:
    unscaled = """
def compile(self, optimizer, loss, plain=module.keras.Model.compile):
    plain(self, optimizer=optimizer, loss=loss)
    self.optimizer = optimizer
module.keras.Model.compile = compile
"""
    result = judged(ran(target, "amp_keras", setup=unscaled), "ACC-003")
    assert result.outcome == "warn", result
    assert "without a loss scale" in result.findings[0].message


@KERAS
def test_tensorflow_that_sees_no_gpu_could_not_run(target: str) -> None:
    run = ran(target, "amp_keras", device="gpu")
    assert run.outcome == "not-run"
    assert "list_physical_devices('GPU') is empty" in run.reason
    assert judged(run, "ACC-003").outcome == "could-not-run"


def test_keras_that_fails_in_half_on_the_cpu_could_not_run() -> None:
    failing = """
def convolution(*arguments, **options):
    raise RuntimeError("no kernel for float16")
def set_policy(name, plain=module.keras.mixed_precision.set_global_policy):
    plain(name)
    if name == "mixed_float16":
        module.keras.layers.Conv2D = convolution
module.keras.mixed_precision.set_global_policy = set_policy
"""
    run = ran("tensorflow-2.15", "amp_keras", setup=failing)
    result = judged(run, "ACC-003")
    assert result.outcome == "could-not-run"
    assert "no kernel for float16" in str(result)


def test_autocast_that_does_nothing_is_a_failure() -> None:
    off = """
import contextlib
module.autocast = lambda *arguments, **options: contextlib.nullcontext()
"""
    result = judged(ran("torch", "amp_torch", setup=off), "ACC-004")
    assert result.outcome == "fail"
    assert "autocast is on in PyTorch" in result.findings[0].message
    assert "0 of 2 convolutions and 0 of 3 products" in result.findings[0].message


def test_gradscaler_that_steps_at_an_overflow_is_a_failure() -> None:
    always = """
def step(self, optimizer):
    optimizer.step()
module.amp.GradScaler.step = step
module.amp.GradScaler.update = lambda self, new_scale=None: None
"""
    result = judged(ran("torch", "amp_torch", setup=always), "ACC-004")
    assert result.outcome == "fail"
    assert "an overflow gets into the weights" in result.findings[0].message


def test_operations_are_seen_by_modules_where_no_mode_is() -> None:
    run = ran("torch", "amp_torch", setup="module.__version__ = '1.12.1'")
    assert run.trials[1].evidence["seen_by"] == "modules' results"
    result = judged(run, "ACC-004")
    assert result.outcome == "pass", result
    assert "1 of 1 convolutions and 1 of 1 products" in result.detail


def test_torch_without_cuda_could_not_run_what_is_for_a_gpu() -> None:
    for module, code in (("amp_torch", "ACC-004"), ("amp_speed_torch", "ACC-005")):
        run = ran("torch", module, device="gpu")
        assert (run.outcome, run.reason) == ("not-run", "torch.cuda.is_available() is False")
        assert judged(run, code).outcome == "could-not-run"


@pytest.mark.parametrize("target", ["torch", "tensorflow-2.15"])
def test_what_mixed_precision_gains_needs_a_gpu(target: str) -> None:
    result = doctor(target, "amp-tensor-cores", "ACC-005")
    assert result["outcome"] in ("skipped", "could-not-run"), result
    assert "CUDA" in why(result) or "no GPU" in why(result)


@pytest.mark.parametrize("target", ["torch", "tensorflow-1.15", "tensorflow-newest"])
def test_steps_are_timed_in_every_precision(target: str) -> None:
    """On the CPU, where it says nothing: the way there alone, with tiny steps."""
    module = "amp_speed_torch" if target == "torch" else "amp_speed_tensorflow"
    run = ran(target, module)
    names = ["product", "product n+1", "product n-1", "convolution"]
    assert [(one.name, one.outcome) for one in run.trials] == [(name, "ok") for name in names]
    for one in run.trials:
        told = {key: value for key, value in one.evidence.items() if key.endswith("_ms")}
        assert {"amp_ms", "float32_ms"} <= set(told)
        assert all(isinstance(value, float) and value > 0 for value in told.values())
        if module == "amp_speed_tensorflow":  # what is asked for ran, and was not optimised away
            least = 2 if one.name.startswith("product") else 6
            assert one.evidence["operations"] == one.evidence["operations_half"] >= least
    assert [one.evidence["n"] for one in run.trials[:3]] == [64, 65, 63]


_AS_ON_A_GPU = """
import contextlib
from envcheck.collector.kernels import framework_tensorflow
for kind in (framework_tensorflow.Eager, framework_tensorflow.Graphs):
    kind.absent = lambda self: None
    kind.facts = lambda self: {"name": "NVIDIA A100", "compute_capability": "8.0"}
module.device = lambda name: contextlib.nullcontext()
system._SMALL = system._TINY
"""


@pytest.mark.parametrize("target", ["tensorflow-1.15", "tensorflow-newest"])
def test_tensorflow_that_is_told_of_a_gpu_is_timed_in_tf32_where_it_has_the_switch(
    target: str,
) -> None:
    run = ran(target, "amp_speed_tensorflow", device="gpu", setup=_AS_ON_A_GPU)
    assert [one.outcome for one in run.trials] == ["ok"] * 4, run.trials
    switch = target != "tensorflow-1.15"
    for name in ("product", "convolution"):
        (one,) = [one for one in run.trials if one.name == name]
        assert one.evidence["float32_is"] == ("FP32" if switch else "its default")
        assert ("tf32_ms" in one.evidence) == switch
        assert one.evidence["compute_capability"] == "8.0"
        assert "kernels" in one.evidence or "kernels_unseen" in one.evidence
    assert judged(run, "ACC-005").outcome in ("pass", "warn")  # a CPU's times say nothing
