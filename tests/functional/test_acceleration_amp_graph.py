"""AMP by graph rewrite on real TensorFlows, on the CPU (opt-in: pytest -m slow).

Engaged for real: the rewrite for bfloat16, which CPUs have. The one for GPUs rewrites graphs for made-up
GPUs, and runs none. What a GPU would be given is run on the CPU by TensorFlows that are told they have one.
"""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cli import envcheck, environment
from processes import PATIENCE
from real_targets import real_target

import envcheck as package

pytestmark = pytest.mark.slow

ROOT = Path(package.__file__).parents[1]
SCRIPTS = Path(__file__).parent
AMP = "TF_ENABLE_AUTO_MIXED_PRECISION"
TWO = ["tensorflow-2.15", "tensorflow-newest"]

# The system, as its process runs it; {setup} comes before. Prints its trials.
RUN = """
import json, sys
sys.path.insert(0, {root!r})
from envcheck.collector import framework
from envcheck.collector.systems.running import records
from envcheck.collector.systems.shared.amp import tensorflow_step
from envcheck.collector.systems import amp_graph
tf, problem = framework.load("tensorflow")
kept = records.KeptTrials()
{setup}
params = dict(device={device!r}, memory_mib=None, gpus=[], root={root!r}, module="amp_graph")
amp_graph.run(tf, params, kept)
print(json.dumps([records.trial_of(*one) for one in kept.trials]))
"""


@cache
def doctor(target: str, **variables: str) -> dict[str, dict[str, Any]]:
    arguments = ("--target", real_target(target), "--only", "amp-graph,ENV-014", "--level", "deep")
    result = envcheck("doctor", *arguments, "--format", "json", timeout=PATIENCE, **variables)
    return {one["code"]: one for one in json.loads(result.stdout)["results"]}


def python(target: str, *arguments: str, **variables: str) -> Any:
    """What a script prints last, run by that target."""
    argv = [str(real_target(target) / "bin" / "python"), "-B", *arguments]
    env = environment(**variables)
    done = subprocess.run(
        argv, capture_output=True, env=env, timeout=PATIENCE, check=False, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def trials(target: str, device: str = "cpu", setup: str = "", **variables: str) -> dict[str, Any]:
    script = RUN.format(root=str(ROOT), device=device, setup=setup)
    return {one["name"]: one for one in python(target, "-c", script, **variables)}


def why(result: dict[str, Any]) -> str:
    return str(result.get("reason")) + str(result.get("unjudged"))


@pytest.mark.parametrize("target", TWO)
def test_bfloat16_engages_on_the_cpu(target: str) -> None:
    result = doctor(target)["ACC-001"]
    assert result["outcome"] == "pass", result
    assert "5 of 5 convolutions and 3 of 3 products in bfloat16, on the CPU" in result["detail"]
    assert "from 32768 to 16384 and the weights stay" in result["detail"]


def test_tensorflow_1_on_the_cpu_is_not_applicable_and_rewrites_for_a_made_up_gpu() -> None:
    result = doctor("tensorflow-1.15")["ACC-001"]
    assert result["outcome"] == "skipped"
    assert "built without CUDA" in why(result)
    assert "5 of 5 convolutions and 3 of 3 products in float16" in why(result)


@pytest.mark.parametrize("target", ["tensorflow-1.15", *TWO])
def test_variable_of_nvidias_builds_is_not_known(target: str) -> None:
    results = doctor(target, **{AMP: "1", f"{AMP}_LOSS_SCALING": "1"})
    assert results["ACC-002"]["outcome"] == "fail"
    (finding,) = results["ACC-002"]["findings"]
    assert AMP in finding["message"] and "does not know the name" in finding["message"]
    assert results["ENV-014"]["consequence_of"] == "ACC-002"


@pytest.mark.parametrize("target", ["tensorflow-1.15", *TWO])
def test_no_variable_is_not_applicable(target: str) -> None:
    results = doctor(target)
    assert results["ACC-002"]["outcome"] == "skipped", results
    assert "knows none" in why(results["ACC-002"])
    assert results["ENV-014"]["outcome"] == "pass"


def test_nobody_can_tell_under_xla() -> None:
    flags = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"
    result = doctor("tensorflow-2.15", TF_XLA_FLAGS=flags)["ACC-001"]
    assert result["outcome"] == "could-not-run"
    assert "XLA compiled the step" in why(result)


def test_resnet_50_is_rewritten_whole() -> None:
    told = python("tensorflow-1.15", str(SCRIPTS / "resnet50_rewritten.py"), str(ROOT))
    counts = {name: (one["half_convolutions"], one["convolutions"]) for name, one in told.items()}
    assert counts == {"8.0": (158, 158), "8.0 off": (0, 158), "6.1": (0, 158)}
    assert told["8.0"]["casts"] > 100 and not told["8.0 off"]["casts"]


# A TensorFlow that is told it has a GPU: what is run there, run on the CPU

_AS_ON_A_GPU = """
tensorflow_step._MODEST = (8, 8, 8)
amp_graph.tensorflow_words.look = lambda folders: (list(amp_graph.tensorflow_words.VARIABLES), True, False)
"""


@pytest.mark.parametrize("target", ["tensorflow-1.15", *TWO])
def test_what_a_gpu_is_given_is_timed_and_tried_by_variable(target: str) -> None:
    told = trials(target, "gpu", _AS_ON_A_GPU)
    assert {one["outcome"] for one in told.values()} == {"ok"}, told
    names = ["session", "session off"]
    names += [] if target == "tensorflow-1.15" else ["function", "function off"]
    assert set(told) == {*names, "variables", "loss scale", "loss scale off", "variable"}
    for name in names:
        assert told[name]["evidence"]["step_ms"] > 0
        assert told[name]["evidence"]["half_convolutions"] == 0
    alone = told["variable"]["evidence"]
    assert alone["asked"] == [f"{AMP}=1"] and alone["half_convolutions"] == 0
    assert alone["convolutions"] == 5 and alone["loss_scaling"] is False
    assert told["variables"]["evidence"]["compute_capability"] == ""


def test_only_what_can_run_here_is_run() -> None:
    told = trials("tensorflow-2.15")
    assert told["made-up GPU"]["evidence"]["half_convolutions"] == 5
    assert told["made-up GPU off"]["evidence"]["half_convolutions"] == 0
    assert told["bfloat16"]["evidence"]["half_convolutions"] == 5
    assert told["function off"]["evidence"]["half_convolutions"] == 0
    assert told["function"]["evidence"]["half_convolutions"] == 0  # no GPU


_STUCK = """
from importlib import import_module
scale = import_module("tensorflow.python.training.experimental.loss_scale")
scale.DynamicLossScale.update = lambda self, grads: (tf.no_op(), tf.constant({apply}))
"""


@pytest.mark.parametrize(
    ("apply", "changed"), [("False", False), ("True", True)], ids=["stuck", "spoils the weights"]
)
def test_loss_scale_that_is_broken_is_seen(apply: str, changed: bool) -> None:
    told = trials("tensorflow-1.15", setup=_STUCK.format(apply=apply))["loss scale"]["evidence"]
    assert told["scale_after"] == told["scale_before"]
    assert told["weights_changed"] is changed
    assert changed or told["next_step_changed"] is False


def test_tensorflow_without_the_function_says_so() -> None:
    told = trials("tensorflow-1.15", setup="amp_graph._WRAPPERS = ('nowhere.at.all',)")
    assert told["session"]["outcome"] == "not-supported"
    assert told["session off"]["outcome"] == "ok"
