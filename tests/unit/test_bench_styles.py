"""The models as lists of layers, and the styles that interpret them."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator

import pytest

from envcheck.collector.bench import models, styles

ROW = {"small": False, "image": 0, "length": 0, "batch": 128}


def _kinds(layers: list[models.Layer]) -> Iterator[models.Layer]:
    for layer in layers:
        yield layer
        for name in ("main", "shortcut", "inner"):
            yield from _kinds(layer.options.get(name, []))
        for branch in layer.options.get("branches", []):
            yield from _kinds(branch)


@pytest.mark.parametrize("style", styles.NAMES)
def test_every_style_interprets_every_kind_of_layer(style: str) -> None:
    module = importlib.import_module(f"envcheck.collector.bench.{style}.layers")
    methods = set(re.findall(r"def _(\w+)\(", inspect.getsource(module)))
    kinds = {one.kind for model in models.MODELS.values() for one in _kinds(model.layers(ROW))}
    assert not kinds - methods


@pytest.mark.parametrize(
    ("model", "kind", "number"),
    [
        ("resnet50", "conv", 53),
        ("resnet50", "batch_norm", 53),
        ("mlp", "dense", 4),
        ("mnist", "conv", 1),
        ("unet-2d", "conv", 19),
        ("unet-2d", "up", 4),
        ("bert-base", "attention", 12),
        ("bert-base", "dropout", 25),
    ],
)
def test_models_have_the_published_layers(model: str, kind: str, number: int) -> None:
    found = [one for one in _kinds(models.MODELS[model].layers(ROW)) if one.kind == kind]
    assert len(found) == number


@pytest.mark.parametrize("style", styles.NAMES)
def test_fp32_is_without_tf32_and_other_rows_may_have_it(style: str) -> None:
    environ = styles.load(style).environ
    row = {"precision": "fp32", "compiled": False, "gpus": ["a"]}
    assert environ(row)["NVIDIA_TF32_OVERRIDE"] == "0"
    assert "NVIDIA_TF32_OVERRIDE" not in environ({**row, "precision": "amp"})
