"""Every model of the JAX style, small, in a real JAX on the CPU (opt-in: pytest -m slow)."""

from __future__ import annotations

import functools
import json
import subprocess
from typing import Any

import msgspec
import probing
import pytest
from cli import environment
from real_targets import real_target

from envcheck.facts.bench import BenchRow

pytestmark = pytest.mark.slow

# Of everything that there is in full: published, or counted by the formula of the architecture.
PARAMETERS = {
    "bert-base": 110106428,
    "bert-large": 336226108,
    "mlp": 37801994,
    "mnist": 347146,
    "resnet50": 25557032,
    "unet-2d": 31030658,
    "unet-3d": 5599746,
}
SIZES: dict[str, dict[str, int]] = {
    "bert-base": {"batch": 4, "length": 32},
    "mlp": {"batch": 8},
    "mnist": {"batch": 64},
    "resnet50": {"batch": 4, "image": 32},
    "unet-2d": {"batch": 2, "image": 16},
    "unet-3d": {"batch": 2, "image": 8},
}
AMP = {"precision": "amp", "half": "bfloat16", "way": "cast"}
START = """
import json, sys
sys.path.insert(0, sys.argv[1])
import jax
from envcheck.collector.bench import jax as style, styles
from envcheck.collector.bench.place import Place
work = json.loads(sys.argv[2])
"""
TRAIN = """
found = []
for row in work:
    try:
        training = style.build(jax, row, Place())
    except Exception as error:
        found.append({"error": type(error).__name__, "reason": str(error)})
        continue
    losses, skipped = [], 0
    for step in range(row["steps"] or 6):
        skipped += training.run(1)
        losses.append(training.loss())
    told = {"losses": losses, "skipped": skipped, "parameters": training.parameters}
    told["accuracy"] = training.accuracy() if hasattr(training, "accuracy") else None
    found.append(dict(told, evidence=training.evidence(), memory=training.memory()))
print(json.dumps(found))
"""
COUNT = """
found = {}
for model in styles.MODELS:
    file, row = styles.model("jax", model), dict(work[0], model=model)
    shapes = jax.eval_shape(lambda key: file.init(jax, row, key)[0], jax.random.PRNGKey(0))
    found[model] = sum(one.size for one in jax.tree_util.tree_leaves(shapes))
print(json.dumps(found))
"""
# The slope of the loss along a random direction: by the gradient, and by the loss on both sides, in FP64.
GRADIENT = """
import numpy
from envcheck.collector.bench.jax.training import JaxTraining
jax.config.update("jax_enable_x64", True)
JaxTraining._ready = lambda self: None  # its step is not compiled
random, found = numpy.random.RandomState(9), []
for row in work:
    training = style.build(jax, row, Place())
    wide = lambda tree: jax.tree_util.tree_map(lambda one: numpy.asarray(
        one, "float64" if "float" in str(one.dtype) else one.dtype), tree)
    params, state = wide(training._held["params"]), wide(training._held["state"])
    inputs, targets = wide(jax.jit(training._batch)(training._held, training._data))
    both = jax.jit(jax.value_and_grad(
        lambda params: training.objective(params, state, inputs, targets)[0]))
    leaves, tree = jax.tree_util.tree_flatten(params)
    way = [random.standard_normal(one.shape) for one in leaves]
    length = sum((one * one).sum() for one in way) ** 0.5
    way = [one / length for one in way]  # short, so that few units are pushed over their edges
    slopes = jax.tree_util.tree_leaves(both(params)[1])
    slope = sum(float((a * numpy.asarray(b)).sum()) for a, b in zip(way, slopes))
    step = 1e-6
    moved = [float(both(tree.unflatten([p + sign * step * d for p, d in zip(leaves, way)]))[0])
        for sign in (1, -1)]
    found.append([slope, (moved[0] - moved[1]) / (2 * step)])
print(json.dumps(found))
"""


def row(model: str, **fields: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": model,
        "what": model,
        "model": model,
        "style": "jax",
        "seed": 3,
    }
    values |= {"compiled": True, "small": True, **SIZES[model], **fields}
    return msgspec.structs.asdict(BenchRow(**values))


def ask(script: str, work: list[dict[str, Any]]) -> Any:
    """What a JAX process prints. XLA is to compile quickly; two devices, for what runs on several."""
    flags = "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
    done = subprocess.run(
        [
            *(str(real_target("jax") / "bin" / "python"), "-B", "-c", START + script),
            *(str(probing.REPOSITORY), json.dumps(work)),
        ],
        env=environment(JAX_PLATFORMS="cpu", XLA_FLAGS=flags),
        capture_output=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@functools.cache
def plain() -> Any:
    """Every model in FP32 and with AMP."""
    rows = [row(model, steps=6, **mode) for model in SIZES for mode in ({}, AMP)]
    return dict(
        zip(((one["model"], one["precision"]) for one in rows), ask(TRAIN, rows), strict=True)
    )


def test_every_model_has_the_published_number_of_parameters() -> None:
    assert ask(COUNT, [row("mlp", small=False)]) == PARAMETERS


@pytest.mark.parametrize("model", SIZES)
@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_losses_fall(model: str, precision: str) -> None:
    losses = plain()[model, precision]["losses"]
    # A step of mnist has other samples than the one before.
    assert min(losses[1:]) < losses[0], losses


@pytest.mark.parametrize("model", SIZES)
def test_amp_is_seen_in_its_own_module_and_not_in_that_without(model: str) -> None:
    without, with_amp = (plain()[model, one]["evidence"] for one in ("fp32", "amp"))
    kinds = ("products", "convolutions")
    assert sum(without[kind] for kind in kinds) > 0
    for kind in kinds:
        assert without["half_" + kind] == 0
        assert with_amp["half_" + kind] == with_amp[kind] == without[kind]
    # XLA widens them on a CPU, and the evidence says so.
    assert with_amp["hidden_by_compiler"] is True and with_amp["math_dtype"] == "float32"
    assert without["hidden_by_compiler"] is False and without["tf32_bits"] == "fp32"


@pytest.mark.parametrize("model", SIZES)
def test_the_same_seed_begins_alike_and_agrees(model: str) -> None:
    without, with_amp = (plain()[model, one]["losses"] for one in ("fp32", "amp"))
    # Where resnet50 ends, an image of this size is a pixel: batch norm is over 4 numbers.
    near = 0.1 if model == "resnet50" else 0.02
    assert with_amp[0] == pytest.approx(without[0], rel=near)
    assert with_amp[0] != without[0]


def test_gradients_are_those_of_the_loss() -> None:
    found = ask(GRADIENT, [row(model, seed=5) for model in SIZES])
    for model, (slope, seen) in zip(SIZES, found, strict=True):
        assert slope == pytest.approx(seen, rel=1e-4), model


def test_parity_holds_for_amp_and_not_for_a_stuck_scaler() -> None:
    modes: list[dict[str, Any]] = [
        {},
        AMP,
        {**AMP, "half": "float16", "scaler": "dynamic"},
        {**AMP, "half": "float16", "scaler": "stuck"},
        {**AMP, "scaler": "stuck"},
        {"precision": "half", "half": "bfloat16"},
    ]
    found = ask(TRAIN, [row("mlp", steps=12, **mode) for mode in modes])
    fp32, bfloat16, float16, underflows, overflows, half = (one["losses"] for one in found)
    assert bfloat16[-1] == pytest.approx(fp32[-1], rel=0.1)
    assert float16[-1] == pytest.approx(fp32[-1], rel=0.02)
    assert fp32[-1] < fp32[0] / 4
    assert set(overflows) == {overflows[0]} and found[4]["skipped"] == 12
    assert underflows[-1] > underflows[0] * 0.99 and found[3]["skipped"] == 0
    assert half[-1] != bfloat16[-1]
    assert found[2]["evidence"]["loss_scale"] == 2.0**15


def test_a_scale_that_overflows_skips_steps_and_falls() -> None:
    mode = {**AMP, "half": "float16", "scaler": "dynamic"}
    high = "from envcheck.collector.bench.jax import training; training._SCALE = 2.0**30\n"
    (found,) = ask(high + TRAIN, [row("mlp", steps=30, **mode)])
    skipped, losses = found["skipped"], found["losses"]
    assert 3 < skipped < 25
    assert found["evidence"]["skipped_steps"] == skipped
    assert found["evidence"]["loss_scale"] == 2.0 ** (30 - skipped)
    assert len(set(losses[: skipped + 1])) == 1 and losses[-1] < losses[0]


def test_digits_are_learned() -> None:
    (found,) = ask(TRAIN, [row("mnist", steps=80)])
    assert found["accuracy"] > 0.9


def test_two_devices_train_as_one_job() -> None:
    both, alone = ask(TRAIN, [row("mnist", together="mirrored", steps=40), row("mnist", steps=1)])
    assert both["evidence"]["replicas"] == 2
    assert both["parameters"] == alone["parameters"] == PARAMETERS["mnist"]
    assert both["accuracy"] > 0.8


def test_forward_alone_trains_nothing() -> None:
    (found,) = ask(TRAIN, [row("mlp", train=False)])
    assert len(set(found["losses"])) == 1 and found["losses"][0] > 0
    assert (found["evidence"]["products"], found["skipped"]) == (4, 0)


def test_what_jax_does_not_have_is_said_in_a_sentence() -> None:
    lacking: list[dict[str, Any]] = [
        {"compiled": False},
        {"data": "dali"},
        {"together": "horovod"},
        {"tensorrt": True, "train": False},
        {"precision": "amp", "half": "float16", "way": "policy"},
    ]
    for found in ask(TRAIN, [row("mlp", **one) for one in lacking]):
        assert found["error"] == "NotSupported" and found["reason"].startswith("JAX ")
