"""Published rates: which fit a row, and that the table is sound."""

from __future__ import annotations

from typing import Any

import bench_machines as made
import bench_runs as recorded
import pytest

from envcheck.bench.places import BenchGpu, bench_gpu
from envcheck.bench.records import ReferenceRate
from envcheck.bench.references import published, references
from envcheck.data.gpu_names import capability_of


def _gpus(product: str = "a100", count: int = 1, **changes: Any) -> list[BenchGpu]:
    found = [bench_gpu(gpu) for gpu in made.gpus(product, count, **changes)]
    return [one for one in found if one is not None]


def _found(gpus: list[BenchGpu], **changes: Any) -> list[ReferenceRate]:
    fields = {"style": "session", "precision": "amp", "compiled": True, **changes}
    return references(recorded.row(gpus=[gpu.address for gpu in gpus], **fields), gpus)


def test_what_agrees_in_everything_fits() -> None:
    first = _found(_gpus())[0]
    assert first.rate == 2375.0
    assert first.about == (
        "A100 40GB SXM4, AMP, compiled, batch 256, TensorFlow 1, container 20.06"
    )
    assert first.source.startswith("github.com/NVIDIA/DeepLearningExamples@")
    h100 = references(
        recorded.row(style="torch", batch=1280, gpus=["x"], precision="amp"), _gpus("h100")
    )
    assert h100[0].least < h100[0].rate < h100[0].most


@pytest.mark.parametrize(
    ("gpu", "row"),
    [
        ({}, {"batch": 128}),
        ({}, {"compiled": False}),
        ({}, {"style": "keras"}),
        ({}, {"image": 448}),
        ({}, {"small": True}),
        ({}, {"precision": "fp32"}),
        ({}, {"model": "mnist", "image": 28}),
        ({"memory_total_mib": 81920}, {}),
        ({"name": "NVIDIA A100-PCIE-40GB"}, {}),
        ({"name": "NVIDIA A40", "compute_capability": "8.6", "memory_total_mib": 46068}, {}),
        ({"name": "", "compute_capability": ""}, {}),
    ],
)
def test_what_differs_in_anything_is_no_reference(gpu: dict[str, Any], row: dict[str, Any]) -> None:
    assert _found(_gpus(**gpu), **row) == []


def test_every_published_rate_is_sound() -> None:
    rows = published()
    assert len(rows) > 40
    for one in rows:
        assert one.source.startswith("github.com/") and "#L" in one.source
        assert 0 < one.least <= one.rate <= one.most and one.gpus >= 1 and one.machines >= 1
        assert one.precision in ("fp32", "tf32", "amp")
        assert capability_of(one.gpu)[0], one.gpu
    keys = [one._replace(rate=0, least=0, most=0, machines=0, source="") for one in rows]
    assert len(set(keys)) == len(keys)
