"""TensorFlow 1.15's rows on the CPU: counted, trained, held against references (opt-in: pytest -m slow)."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cli import environment
from processes import PATIENCE
from real_targets import real_target

import envcheck as package
from envcheck.collector.acceleration.dali_images import JPEG, PNG

pytestmark = pytest.mark.slow

ROOT = Path(package.__file__).parents[1]
SCRIPT = Path(__file__).with_name("session_rows.py")
SMALL = {"mlp": {}, "mnist": {"batch": 64}, "resnet50": {"image": 32}, "bert-base": {"length": 32},
         "unet-2d": {"image": 32}, "unet-3d": {"image": 16}}  # fmt: skip
AMP = {"precision": "amp", "half": "float16", "way": "rewrite", "scaler": "dynamic"}
PUBLISHED = {
    "resnet50": 25_557_032,
    "mnist": 347_146,
    "bert-base": 110_106_428,
    "bert-large": 336_226_108,
    "unet-2d": 31_030_658,
    "unet-3d": 5_599_746,
    "mlp": 37_801_994,
}


def ask(requests: list[dict[str, Any]], target: str = "tensorflow-1.15", **variables: str) -> Any:
    argv = [real_target(target) / "bin" / "python", "-B", SCRIPT, ROOT, json.dumps(requests)]
    done = subprocess.run(
        [str(one) for one in argv],
        capture_output=True,
        env=environment(**variables),
        timeout=PATIENCE,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def request(do: str, model: str, steps: int = 8, **row: Any) -> dict[str, Any]:
    return {"do": do, "steps": steps, "row": {"model": model, **row}}


@cache
def trained() -> dict[str, Any]:
    """Each model at its small size, in FP32."""
    asked = [request("train", model, 12, **row) for model, row in SMALL.items()]
    return dict(zip(SMALL, ask(asked), strict=True))


def test_parameters_are_the_published_ones() -> None:
    asked = [request("count", model, small=False, batch=1) for model in PUBLISHED]
    assert dict(zip(PUBLISHED, ask(asked), strict=True)) == PUBLISHED


@pytest.mark.parametrize("model", SMALL)
def test_losses_fall(model: str) -> None:
    losses = trained()[model]["losses"]
    assert sum(losses[-3:]) < sum(losses[:3]), losses
    assert trained()[model]["skipped"] == 0


def test_digits_are_learned_and_others_recognized() -> None:
    assert trained()["mnist"]["accuracy"] > 0.9


def test_evidence_of_a_row_in_fp32() -> None:
    told = trained()["resnet50"]["evidence"]
    assert (told["convolutions"], told["half_convolutions"]) == (158, 0)
    assert (told["products"], told["half_products"]) == (3, 0)
    assert (told["math_dtype"], told["tf32_bits"]) == ("float32", "fp32")
    assert told["compiled_modules"] == 0 and "loss_scale" not in told


def test_gradients_are_those_of_finite_differences() -> None:
    sizes = {**SMALL, "mnist": {"batch": 8}, "bert-base": {"length": 8}, "unet-3d": {"image": 8}}
    answers = ask([request("gradient", model, **row) for model, row in sizes.items()])
    for model, (along, difference) in zip(sizes, answers, strict=True):
        close = 1e-2 if model == "unet-3d" else 1e-4  # which is in 32 bits
        assert along == pytest.approx(difference, rel=close), model


def test_amp_agrees_and_what_is_stuck_or_half_does_not() -> None:
    modes = (AMP, {**AMP, "scaler": "stuck"}, {"precision": "half", "half": "float16"})
    asked = [request("train", "bert-base", 12, **SMALL["bert-base"], **mode) for mode in modes]
    amp, stuck, half = ask(asked)
    plain = trained()["bert-base"]["losses"]
    assert amp["losses"] == pytest.approx(plain, rel=1e-3)
    assert (amp["skipped"], amp["evidence"]["loss_scale"]) == (0, 32768.0)
    # A CPU takes no part in the rewrite for GPUs, and the row says so.
    assert (amp["evidence"]["half_products"], amp["evidence"]["math_dtype"]) == (0, "float32")
    assert stuck["skipped"] == 12 and len(set(stuck["losses"])) == 1
    assert stuck["losses"][0] == pytest.approx(plain[0], rel=1e-5)  # from the same weights
    assert half["evidence"]["half_products"] == half["evidence"]["products"] > 0
    assert half["losses"][0] == pytest.approx(plain[0], rel=1e-2)
    assert half["losses"][-1] != pytest.approx(plain[-1], rel=1e-2)


def test_amp_makes_all_of_resnet50_half_on_a_made_up_gpu() -> None:
    (told,) = ask([request("rewritten", "resnet50", small=False, image=224, batch=8, **AMP)])
    assert (told["8.0"]["convolutions"], told["8.0"]["half_convolutions"]) == (158, 158)
    assert (told["6.1"]["convolutions"], told["6.1"]["half_convolutions"]) == (158, 0)


def test_xla_compiles_and_its_products_are_counted_all_the_same(tmp_path: Path) -> None:
    told = []
    for mode in ({}, {"precision": "half", "half": "float16"}):
        asked = [request("train", "mlp", 4, compiled=True, **mode)]
        variables = {"TF_XLA_FLAGS": "--tf_xla_cpu_global_jit", "TMPDIR": str(tmp_path)}
        told += ask(asked, **variables)
    plain, half = (one["evidence"] for one in told)
    assert plain["compiled_modules"] == plain["xla_runs"] == half["compiled_modules"] == 1
    assert (plain["products"], plain["half_products"]) == (11, 0)
    assert half["half_products"] == 11 and half["math_dtype"] == "float16"
    assert told[0]["losses"] == pytest.approx(trained()["mlp"]["losses"][:4], rel=1e-4)


def test_two_replicas_train_as_one() -> None:
    asked = [
        request("train", "mlp", 6, together="mirrored"),
        request("train", "mlp", 6, together="mirrored", **{**AMP, "scaler": "stuck"}),
    ]
    mirrored, stuck = ask(asked)
    assert mirrored["evidence"]["replicas"] == 2
    assert mirrored["evidence"]["products"] == 2 * trained()["mlp"]["evidence"]["products"]
    assert mirrored["losses"] == pytest.approx(trained()["mlp"]["losses"][:6], rel=1e-3)
    assert stuck["skipped"] == 6


def test_forward_alone_runs_what_training_runs_forward() -> None:
    asked = [request("train", model, 2, train=False, **row) for model, row in SMALL.items()]
    found = dict(zip(SMALL, ask(asked), strict=True))
    assert found["resnet50"]["evidence"]["convolutions"] == 53
    assert found["mlp"]["evidence"]["products"] == 4
    assert found["unet-3d"]["evidence"]["convolutions"] == 18
    for model, told in found.items():
        assert told["parameters"] == trained()[model]["parameters"]


def test_images_are_read_from_a_folder(tmp_path: Path) -> None:
    for name, data in (("cats/1.jpg", JPEG), ("dogs/1.png", PNG), ("dogs/more/2.JPEG", JPEG)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    row = {"image": 32, "data": "tf.data"}
    asked = [
        {**request("train", "resnet50", 2, **{**row, **more}), "folder": str(tmp_path)}
        for more in ({}, {"train": False}, {"data": "dali"})
    ]
    trained_on, forward, dali = ask(asked)
    told = trained_on["evidence"]
    assert told["convolutions"] == 158 and forward["evidence"]["convolutions"] == 53
    assert told["input_rate"] > 0 and told["resident_rate"] > 0
    assert len(set(forward["losses"])) == 2  # other images, or other parts of them
    assert dali == {"not_supported": "TensorFlow 1's sessions read images through tf.data alone"}


def test_what_this_version_and_a_cpu_lack() -> None:
    lacking = [
        {"precision": "tf32"},
        {**AMP, "half": "bfloat16"},
        {**AMP, "way": "policy"},
        {"train": False, "tensorrt": True},
        {"together": "ddp"},
    ]
    said = [
        one["not_supported"] for one in ask([request("train", "mlp", **one) for one in lacking])
    ]
    assert said == [
        "a CPU has no TF32",
        "this TensorFlow has no rewrite to bfloat16",
        "with sessions, AMP is a rewrite of the graph, and no policy",
        "this tensorflow is built without TensorRT",
        "with TensorFlow 1's sessions there is no ddp",
    ]
