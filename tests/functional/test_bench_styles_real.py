"""Each style trains each model in a real framework on the CPU (opt-in: pytest -m slow)."""

from __future__ import annotations

import functools
import socket
from pathlib import Path
from typing import Any

import pytest
from cli import envcheck
from processes import PATIENCE
from real_targets import real_target
from style_rows import answer, row, start, told

from envcheck.bench.parity import AGREE, parities
from envcheck.collector.systems.shared.dali_images import JPEG, PNG
from envcheck.collector.systems.shared.distributed.horovod import Rendezvous, gloo_environ
from envcheck.facts import snapshot as snapshots

pytestmark = pytest.mark.slow

SIZES: dict[str, dict[str, Any]] = {
    "mlp": {},
    "mnist": {"batch": 32},
    "resnet50": {"image": 32, "batch": 4},
    "bert-base": {"length": 32, "batch": 4},
    "unet-2d": {"image": 32, "batch": 2},
}
# In full: as published, where that is known; else by the architecture's own arithmetic.
PARAMETERS = {
    "resnet50": 25_557_032,
    "mnist": 347_146,
    "bert-base": 110_106_428,
    "unet-2d": 31_030_658,
    "mlp": 37_801_994,
}
STYLES = {
    "session": "tensorflow-1.15",
    "keras": "tensorflow-2.15",
    "keras 3": "tensorflow-newest",
    "torch": "torch",
    "jax": "jax",
}
_WAYS = {"session": "rewrite", "keras": "policy", "torch": "autocast", "jax": "cast"}
with_amp = pytest.mark.parametrize("name", ["keras", "keras 3", "torch", "jax"])
in_each = pytest.mark.parametrize("name", STYLES)


def amp(name: str, half: str = "bfloat16") -> dict[str, Any]:
    scaler = "dynamic" if half == "float16" else ""
    way = _WAYS[name.split()[0]]
    return {"precision": "amp", "half": half, "way": way, "scaler": scaler}


def ask(name: str, *asked: tuple[str, dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    rows = [row(name.split()[0], model, **fields) for model, fields in asked]
    return told(rows, STYLES[name], **options)


@functools.cache
def trained(name: str) -> dict[str, dict[str, Any]]:
    """Each model at its small size, in FP32."""
    asked = [(model, {**size, "taken": 15}) for model, size in SIZES.items()]
    return dict(zip(SIZES, ask(name, *asked), strict=True))


@in_each
def test_every_model_has_the_published_number_of_parameters(name: str) -> None:
    full = {"small": False, "batch": 1, "unseen": True}
    asked = [(model, {**SIZES[model], **full}) for model in PARAMETERS]
    found = dict(zip(PARAMETERS, ask(name, *asked), strict=True))
    assert {model: one["parameters"] for model, one in found.items()} == PARAMETERS


@in_each
@pytest.mark.parametrize("model", SIZES)
def test_losses_fall(name: str, model: str) -> None:
    found = trained(name)[model]
    losses = found["losses"]
    assert sum(losses[-3:]) < sum(losses[:3]), losses
    assert found["skipped"] == 0


@in_each
def test_evidence_in_fp32(name: str) -> None:
    for found in trained(name).values():
        seen = found["evidence"]
        assert seen["half_convolutions"] == seen["half_products"] == 0
        assert (seen["math_dtype"], seen["tf32_bits"]) == ("float32", "fp32")
    assert trained(name)["mlp"]["evidence"]["products"] == 11
    assert trained(name)["mlp"]["evidence"]["convolutions"] == 0


@with_amp
def test_amp_shows_and_its_losses_agree(name: str) -> None:
    for model, plain in trained(name).items():
        (found,) = ask(name, (model, {**SIZES[model], **amp(name), "taken": 15}))
        seen = found["evidence"]
        for kind in ("convolutions", "products"):
            assert seen["half_" + kind] >= seen[kind] * 3 / 4, (model, seen)
        assert sum(found["losses"][-3:]) < sum(found["losses"][:3])
        # Where resnet50 ends, an image of this size is a pixel: batch norm is over 4 numbers.
        near = 0.1 if model == "resnet50" else 0.02
        assert found["losses"][0] == pytest.approx(plain["losses"][0], rel=near)
        assert found["losses"] != plain["losses"]


@with_amp
def test_the_loss_scale_does_not_change_what_is_learned(name: str) -> None:
    half = "bfloat16" if name == "torch" else "float16"
    mode = {**amp(name, half), "scaler": "dynamic", "taken": 6}
    (found,) = ask(name, ("mlp", mode))
    assert found["evidence"]["skipped_steps"] == found["skipped"] == 0
    assert found["evidence"]["loss_scale"] >= 2.0**15
    assert found["losses"][0] > found["losses"][-1]


def test_a_scale_that_overflows_is_counted_in_jax() -> None:
    high = "from envcheck.collector.bench.jax import training; training._SCALE = 2.0**30\n"
    (found,) = ask("jax", ("mlp", {**amp("jax", "float16"), "taken": 30}), setup=high)
    assert 3 < found["skipped"] < 25
    assert found["evidence"]["loss_scale"] == 2.0 ** (30 - found["skipped"])
    assert len(set(found["losses"][: found["skipped"] + 1])) == 1


@in_each
def test_digits_are_learned_and_others_recognized(name: str) -> None:
    (found,) = ask(name, ("mnist", {"batch": 100, "taken": 1, "asked": 120}))
    assert found["accuracy"] > 0.9


@in_each
def test_the_same_seed_begins_the_same(name: str) -> None:
    one, again, other = ask(name, *[("mlp", {"steps": 3, "seed": seed}) for seed in (3, 3, 4)])
    assert one["losses"] == pytest.approx(again["losses"], rel=1e-5)
    assert one["losses"] != pytest.approx(other["losses"], rel=1e-3)


@in_each
def test_forward_alone_trains_nothing(name: str) -> None:
    asked = [(model, {**SIZES[model], "train": False, "taken": 2}) for model in ("mlp", "resnet50")]
    mlp, resnet = ask(name, *asked)
    assert mlp["losses"][0] == mlp["losses"][1] > 0
    assert mlp["evidence"]["products"] == 4 and resnet["evidence"]["convolutions"] == 53


@pytest.mark.parametrize("name", ["session", "keras", "keras 3", "torch"])
def test_what_is_compiled_is_counted(name: str) -> None:
    (found,) = ask(
        name,
        ("mlp", {"compiled": True, "taken": 4}),
        TF_XLA_FLAGS="--tf_xla_cpu_global_jit" if name == "session" else "",
    )
    if "no compiler here" in found.get("not_supported", ""):
        pytest.skip(found["not_supported"])
    assert found["evidence"]["compiled_modules"] == 1
    assert found["evidence"]["products"] == (4 if name == "torch" else 11)
    assert found["losses"] == pytest.approx(trained(name)["mlp"]["losses"][:4], rel=1e-3)


@pytest.mark.parametrize("name", ["keras", "keras 3", "jax"])
def test_two_devices_train_as_one_job(name: str) -> None:
    (both,) = ask(name, ("mnist", {"together": "mirrored", "batch": 100, "taken": 1, "asked": 60}))
    assert both["evidence"]["replicas"] == 2
    assert both["evidence"].get("weights_differ", 0) == 0
    assert both["parameters"] == PARAMETERS["mnist"] and both["accuracy"] > 0.8


_RANKS = """
def WORK(training, row):
    begun = training.weights()
    training.run(3)
    training.evidence()
    training.run(1)
    return {"begun": begun, "weights": training.weights(), "loss": training.loss()}
"""


def test_two_processes_of_torch_keep_the_same_weights() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    children = []
    mode = {**amp("torch"), "scaler": "dynamic", "together": "ddp"}
    for rank in ("0", "1"):
        one = row("torch", "mlp", place={"rank": int(rank), "ranks": 2}, **mode)
        environ = {"RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        children.append(start([one], "torch", setup=_RANKS, **environ))
    (first,), (second,) = [answer(child) for child in children]
    assert first["begun"] == second["begun"] != first["weights"]
    assert first["weights"] == second["weights"]
    assert first["loss"] != second["loss"]  # each has batches of its own


def test_two_ranks_of_horovod_train_in_keras() -> None:
    with Rendezvous() as port:
        children = [
            start(
                [row("keras", "mlp", together="horovod", taken=4, place={"rank": n, "ranks": 2})],
                "horovod-2.15",
                **gloo_environ(n, 2, port, 300.0),
            )
            for n in range(2)
        ]
        found = [answer(child)[0] for child in children]
    assert [one["evidence"]["rank"] for one in found] == [0, 1]
    assert all(one["losses"][-1] < one["losses"][0] for one in found)


@pytest.mark.parametrize("name", ["keras", "keras 3"])
def test_images_are_read_while_it_trains(name: str, tmp_path: Path) -> None:
    for file, data in (("cats/1.jpg", JPEG), ("dogs/1.png", PNG), ("dogs/more/2.JPEG", JPEG)):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(data)
    size = {"image": 32, "batch": 2, "taken": 2, "place": {"folder": str(tmp_path)}}
    read, dali, mlp = ask(
        name,
        ("resnet50", {"data": "tf.data", **size}),
        ("resnet50", {"data": "dali", **size}),
        ("mlp", {"data": "tf.data", **size}),
    )
    seen = read["evidence"]
    assert seen["convolutions"] == 158
    assert seen["input_rate"] > 0 and seen["resident_rate"] > 0
    assert "no DALI for this TensorFlow" in dali["not_supported"]
    assert "resnet50 alone" in mlp["not_supported"]


_LACKING: list[tuple[str, dict[str, Any], str]] = [
    ("session", {"precision": "tf32"}, "a CPU has no TF32"),
    ("session", {"precision": "amp", "way": "policy"}, "AMP is a rewrite of the graph"),
    ("session", {"data": "tf.data"}, "synthetic data alone"),
    ("keras", {"train": False, "tensorrt": True}, "TensorRT"),
    ("keras", {"together": "ddp"}, "Keras has no ddp"),
    ("torch", {"together": "horovod"}, "horovod.torch cannot be imported"),
    ("jax", {"compiled": False}, "JAX always compiles"),
    ("jax", {"together": "horovod"}, "not by horovod"),
]


@pytest.mark.parametrize(("name", "fields", "words"), _LACKING)
def test_what_a_style_lacks_is_explained(name: str, fields: dict[str, Any], words: str) -> None:
    (found,) = ask(name, ("mlp", {"taken": 1, **fields}))
    assert words in found["not_supported"]


@with_amp
def test_parity_agrees(tmp_path: Path, name: str) -> None:
    kept = tmp_path / "snapshot.json"
    where = real_target(STYLES[name])
    ran = envcheck("bench", "parity", "--target", where, "--save", kept, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stdout.decode() + ran.stderr.decode()
    target = snapshots.load(kept.read_bytes()).target
    assert target is not None and target.bench is not None and target.bench.facts is not None
    runs = target.bench.facts.rows
    assert all(run.outcome == "ok" and len(run.losses) == 60 for run in runs)
    (curve,) = parities(runs)[0].curves
    assert curve.distance is not None and curve.distance < AGREE / 2, curve.words
