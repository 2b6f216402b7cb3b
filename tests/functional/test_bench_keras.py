"""The style "keras" in real TensorFlows on the CPU: parameters, losses, gradients, parity, what engaged."""

from __future__ import annotations

import functools
import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from real_targets import real_target

import envcheck
from envcheck.collector.acceleration.distributed.horovod import Rendezvous, gloo_environ

pytestmark = pytest.mark.slow
_ROOT = Path(envcheck.__file__).parent.parent
_HERE = Path(__file__).parent
_PARAMETERS = {
    "bert-base": 110_106_428,
    "bert-large": 336_226_108,
    "mlp": 37_801_994,
    "mnist": 347_146,
    "resnet50": 25_557_032,
    "unet-2d": 31_030_658,
    "unet-3d": 5_599_746,
}


@functools.cache
def _rows(name: str) -> dict[str, Any]:
    """All rows, run in one process."""
    return _answer(_started(name))


def _started(name: str, *what: str, **environ: str) -> subprocess.Popen[str]:
    python = real_target(name) / "bin" / "python"
    argv = [str(python), "-B", str(_HERE / "keras_rows.py"), str(_ROOT), *what]
    own = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2", "KERAS_BACKEND": "tensorflow"}
    return subprocess.Popen(
        argv,
        env={**os.environ, **own, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    try:
        out, err = process.communicate(timeout=1500)
    finally:
        process.kill()
    assert process.returncode == 0, err[-3000:]
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


@pytest.fixture(params=["tensorflow-2.15", "tensorflow-newest"])
def rows(request: pytest.FixtureRequest) -> dict[str, Any]:
    return _rows(request.param)


def _smoothed(run: dict[str, Any]) -> list[float]:
    """Means of ten losses each."""
    losses = run["losses"]
    return [sum(losses[at : at + 10]) / 10 for at in range(0, len(losses), 10)]


def _apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """How far two runs' smoothed losses are apart, at most, as a share of the first loss."""
    pairs = zip(_smoothed(one), _smoothed(other), strict=True)
    return max(math.inf if math.isnan(b) else abs(a - b) / one["losses"][0] for a, b in pairs)


def test_every_model_has_the_parameters_of_the_published_one(rows: dict[str, Any]) -> None:
    assert rows["parameters"] == _PARAMETERS


def test_losses_fall(rows: dict[str, Any]) -> None:
    for name, run in rows["trained"].items():
        assert min(run["losses"][3:]) < run["losses"][0], (name, run["losses"])
        assert run["skipped"] == 0


def test_gradients_are_the_slope_of_the_loss(rows: dict[str, Any]) -> None:
    for name, (slope, measured) in rows["gradient"].items():
        assert measured == pytest.approx(slope, rel=0.03), name


def test_amp_agrees_with_fp32_and_its_controls_do_not(rows: dict[str, Any]) -> None:
    for agrees in ("policy", "rewrite"):
        assert _apart(rows["fp32"], rows[agrees]) < 0.02, agrees
    for control in ("stuck", "half"):
        assert _apart(rows["fp32"], rows[control]) > 0.1, control
    assert rows["stuck fp16"]["losses"][0] == rows["stuck fp16"]["losses"][-1]


def test_it_learns_what_it_was_not_trained_on(rows: dict[str, Any]) -> None:
    assert rows["fp32"]["accuracy"] > rows["untrained"]["accuracy"] + 0.2


def test_amp_shows_in_the_graph_that_ran(rows: dict[str, Any]) -> None:
    fp32 = rows["fp32"]["evidence"]
    assert fp32["half_convolutions"] == fp32["half_products"] == 0
    assert (fp32["convolutions"], fp32["products"]) == (2, 6)
    assert fp32["math_dtype"] == "float32"
    assert fp32["seen_in"] == "graph that ran"
    for way in ("policy", "rewrite"):
        amp = rows[way]["evidence"]
        assert (amp["half_convolutions"], amp["half_products"]) == (2, 6), way
        assert amp["math_dtype"] == "bfloat16"
        assert amp["weights"] == "float32"
    assert rows["rewrite"]["evidence"]["policy"] == "float32"
    assert rows["half"]["evidence"]["weights"] == "bfloat16"


def test_skipped_steps_are_counted(rows: dict[str, Any]) -> None:
    assert rows["fp16"]["skipped"] == 0
    assert rows["fp16"]["evidence"]["loss_scale"] == 2.0**15
    assert rows["fp16"]["evidence"]["math_dtype"] == "float16"
    assert rows["overflowing"]["skipped"] == 4
    assert rows["overflowing"]["evidence"]["loss_scale"] == 2.0**11
    assert rows["overflowing"]["evidence"]["skipped_steps"] == 4


def test_xla_shows_and_so_does_amp_in_it(rows: dict[str, Any]) -> None:
    assert rows["fp32"]["evidence"]["compiled_modules"] == 0
    for name, halves in (("compiled", 0), ("compiled amp", 11), ("forward compiled", 4)):
        found = rows[name]["evidence"]
        assert found["compiled_modules"] == 1, name
        assert found["seen_in"] == "HLO", name
        assert found["half_products"] == halves, name
    assert rows["compiled with arguments"]["seen_in"] == "HLO"
    assert rows["compiled with arguments"]["half_products"] == 1
    assert rows["compiled rewrite"]["evidence"]["hidden_by_compiler"] is True
    assert rows["compiled"]["losses"] == pytest.approx(rows["plain"]["losses"], rel=0.001)


def test_forward_alone_computes_the_same_again_and_again(rows: dict[str, Any]) -> None:
    losses = rows["forward"]["losses"]
    assert losses == [losses[0]] * 3
    assert rows["forward"]["evidence"]["products"] == 4


def test_what_it_does_not_have_is_said(rows: dict[str, Any]) -> None:
    assert "TensorRT" in rows["tensorrt"]["not_supported"]
    assert rows["ddp"]["not_supported"] == "Keras has no ddp"


def test_a_cpu_tells_no_memory_and_fp32_bits(rows: dict[str, Any]) -> None:
    assert rows["fp32"]["memory"] == {}
    assert rows["fp32"]["evidence"]["tf32_bits"] == "fp32"


def test_replicas_with_the_same_samples_train_as_one_does(rows: dict[str, Any]) -> None:
    mirrored = rows["mirrored"]
    assert mirrored["losses"] == pytest.approx(rows["alone"]["losses"], rel=0.01)
    assert mirrored["evidence"]["replicas"] == 2
    assert mirrored["evidence"]["weights_differ"] == 0
    assert len(set(mirrored["evidence"]["devices"])) == 2
    assert mirrored["evidence"]["half_products"] == mirrored["evidence"]["products"] == 22


@pytest.mark.parametrize("name", ["tensorflow-2.15", "tensorflow-newest"])
def test_images_are_read_while_it_trains(name: str, tmp_path: Path) -> None:
    found = _answer(_started(name, "read", str(tmp_path)))
    evidence = found["tf.data"]["evidence"]
    assert evidence["convolutions"] == 158
    assert evidence["input_rate"] > 0
    assert evidence["resident_rate"] > 0
    assert 0 < evidence["input_seconds_share"] < 1
    assert all(math.isfinite(loss) for loss in found["tf.data"]["losses"])
    assert found["tf.data"]["evidence"]["skipped_steps"] == found["tf.data"]["skipped"] == 0
    assert "no DALI for this TensorFlow" in found["dali"]["not_supported"]
    assert "resnet50 alone" in found["mlp"]["not_supported"]


def test_ranks_with_the_same_samples_train_as_one_does() -> None:
    with Rendezvous() as port:
        ranks = [
            _started("horovod-2.15", "rank", **gloo_environ(rank, 2, port, 300.0))
            for rank in range(2)
        ]
        found = [_answer(rank) for rank in ranks]
    for number, one in enumerate(found):
        assert one["rank"]["losses"] == pytest.approx(one["alone"]["losses"], rel=0.001)
        assert one["rank"]["evidence"]["rank"] == number
        assert one["rank"]["evidence"]["ranks"] == 2
