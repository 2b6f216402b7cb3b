"""Each style trains each model in a real framework on the CPU (opt-in: pytest -m slow)."""

from __future__ import annotations

import functools
import socket
from typing import Any

import pytest
from style_rows import answer, reported, row, start

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
with_amp = pytest.mark.parametrize("name", ["keras", "keras 3", "torch", "jax"])
in_each = pytest.mark.parametrize("name", STYLES)


AMP = {"precision": "amp", "half": "bfloat16"}


def ask(name: str, *asked: tuple[str, dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    rows = [row(name.split()[0], model, **fields) for model, fields in asked]
    return reported(rows, STYLES[name], **options)


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
        (found,) = ask(name, (model, {**SIZES[model], **AMP, "taken": 15}))
        seen = found["evidence"]
        for kind in ("convolutions", "products"):
            assert seen["half_" + kind] >= seen[kind] * 3 / 4, (model, seen)
        assert sum(found["losses"][-3:]) < sum(found["losses"][:3])
        # Where resnet50 ends, an image of this size is a pixel: batch norm is over 4 numbers.
        near = 0.1 if model == "resnet50" else 0.02
        assert found["losses"][0] == pytest.approx(plain["losses"][0], rel=near)
        assert found["losses"] != plain["losses"]


@pytest.mark.parametrize("name", ["keras", "keras 3"])
def test_the_loss_scale_does_not_change_what_is_learned(name: str) -> None:
    (found,) = ask(name, ("mlp", {"precision": "amp", "half": "float16", "taken": 6}))
    assert found["evidence"]["skipped_steps"] == found["skipped"] <= 1
    assert found["evidence"]["loss_scale"] >= 2.0**14
    assert found["losses"][0] > found["losses"][-1]


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


@pytest.mark.parametrize("name", ["keras", "keras 3"])
def test_two_devices_train_as_one_job(name: str) -> None:
    (both,) = ask(name, ("mlp", {"together": "mirrored", "taken": 10}))
    assert both["evidence"]["replicas"] == 2 and both["losses"][0] > both["losses"][-1]


_RANKS = """
def WORK(training, row):
    def sums():
        return [float(one.detach().double().sum()) for one in training._bare.parameters()]
    begun = sums()
    training.run(3)
    training.evidence()
    training.run(1)
    agreed = training.agree(row["place_rank"] + 5)
    return {"begun": begun, "weights": sums(), "loss": training.loss(), "agreed": agreed}
"""


def test_two_processes_of_torch_keep_the_same_weights() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    children = []
    for rank in ("0", "1"):
        one = row("torch", "mlp", place={"rank": int(rank), "ranks": 2}, together="ddp", **AMP)
        one["place_rank"] = int(rank)
        environ = {"RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        children.append(start([one], "torch", setup=_RANKS, **environ))
    (first,), (second,) = [answer(child) for child in children]
    assert first["begun"] == second["begun"] != first["weights"]
    assert first["weights"] == second["weights"] and first["agreed"] == second["agreed"] == 5
    assert first["loss"] != second["loss"]  # each has samples of its own
