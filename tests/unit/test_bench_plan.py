"""Which rows are planned: by WHAT, by what the chip and the framework have, by what fits."""

from __future__ import annotations

from typing import Any

import bench_machines as made
import pytest

from envcheck.bench.making import BatchTooLarge
from envcheck.bench.plan import BenchPlan, plan
from envcheck.bench.request import WHAT, BenchRequest
from envcheck.facts.bench import BenchRow


def _plan(there: Any, *frameworks: Any, **asked: Any) -> BenchPlan:
    return plan(BenchRequest(**asked), made.machine(there, *frameworks))


def _names(found: BenchPlan) -> list[str]:
    return [row.name for row in found.rows]


def test_resnet50_on_a_large_gpu_has_each_mode_at_three_batches() -> None:
    found = _plan(made.gpus("h100"), what=["resnet50"])
    modes = ("fp32", "tf32", "amp", "amp compiled")
    assert _names(found) == [
        f"resnet50 {mode} {batch}" for batch in (128, 256, 512) for mode in modes
    ]
    assert found.left_out == [] and not found.on_cpu
    amp = found.rows[2]
    assert (amp.precision, amp.half, amp.image, amp.small) == ("amp", "float16", 224, False)
    assert amp.gpus == ["0000:01:00.0"] and found.rows[3].compiled
    assert {row.group for row in found.rows[:4]} == {"resnet50 128"}


@pytest.mark.parametrize(
    ("product", "missing", "why"),
    [
        ("v100", "tf32", "TF32 came with compute capability 8.0"),
        ("t4", "tf32", "TF32 came with compute capability 8.0"),
        ("p100", "amp", "Tensor Cores came with compute capability 7.0"),
        ("1660", "amp", "its chip is one without Tensor Cores"),
    ],
)
def test_what_a_chip_lacks_is_left_out_with_the_reason(
    product: str, missing: str, why: str
) -> None:
    found = _plan(made.gpus(product), what=["mlp"])
    assert not [row for row in found.rows if row.precision == missing]
    assert next(one.reason for one in found.left_out if missing in one.name).endswith(why)
    assert "mlp fp32 8192" in _names(found)


def test_what_does_not_fit_is_left_out_and_says_how_much_it_would_take() -> None:
    found = _plan(made.gpus("v100"), what=["resnet50"])
    names = _names(found)
    assert "resnet50 fp32 128" in names and "resnet50 amp 256" in names
    assert "resnet50 fp32 256" not in names
    left = {one.name: one.reason for one in found.left_out}
    assert (
        (left["resnet50 fp32 256"])
        == "batch 256 would take about 25 GiB, and Tesla V100-SXM2-16GB has 16 GiB"
    )
    small = _plan(made.gpus("3060"), what=["resnet50"])
    assert small.rows and max(row.batch for row in small.rows) < 128


def test_a_batch_that_cannot_fit_is_refused_in_one_sentence_and_one_that_can_is_taken() -> None:
    with pytest.raises(BatchTooLarge, match=r"^--batch 100000: resnet50: batch 100000 would take"):
        _plan(made.gpus("h100"), what=["resnet50"], batch=100000)
    with pytest.raises(BatchTooLarge, match="this machine has 16 GiB free"):
        _plan([], what=["resnet50"], batch=1000000)
    found = _plan(made.gpus("h100"), what=["resnet50"], batch=64)
    assert {row.batch for row in found.rows} == {64} and len(found.rows) == 4


@pytest.mark.parametrize(
    ("framework", "version", "half", "together", "compiled"),
    [
        ("tensorflow", "1.15.5", "float16", "", "resnet50 amp xla 256"),
        ("tensorflow", "2.15.1", "float16", "mirrored", "resnet50 amp xla 256"),
        ("torch", "2.9.0", "float16", "ddp", "resnet50 amp compiled 256"),
        ("jax", "0.6.0", "bfloat16", "", "resnet50 amp 256 on GPU 0"),
    ],
)
def test_each_framework_has_its_own_way(
    framework: str, version: str, half: str, together: str, compiled: str
) -> None:
    found = _plan(made.gpus("h100", 2), made.framework(framework, version), what=["resnet50"])
    amp = [row for row in found.rows if row.precision == "amp"]
    assert {row.half for row in amp} == {half}
    assert {row.together for row in amp if row.together} == ({together} if together else set())
    assert next(row for row in found.rows if row.name == compiled).compiled


@pytest.mark.parametrize("product", [*made.PRODUCTS, ""])
@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_every_what_is_planned_everywhere_with_names_of_their_own(
    product: str, framework: str
) -> None:
    there = made.gpus(product, 2) if product else []
    asked = {"what": list(WHAT)}
    found = _plan(there, made.framework(framework, "2.15.1"), **asked)
    names = _names(found)
    assert len(set(names)) == len(names) > 5
    assert {row.what for row in found.rows} == set(WHAT)
    groups = [row.group or row.name for row in found.rows]
    seen: list[str] = []
    for group in groups:
        if not seen or seen[-1] != group:
            seen.append(group)
    assert len(seen) == len(set(seen)), "rows of a group stand together"
    assert all(_is_whole(row) for row in found.rows)


def _is_whole(row: BenchRow) -> bool:
    has_half = bool(row.half) == (row.precision == "amp")
    return has_half and row.batch >= 1 and bool(row.name.strip()) and len(row.name) < 80
