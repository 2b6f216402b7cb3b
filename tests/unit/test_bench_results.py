"""What rows mean: proof, speed-up, utilisation, verdict, peers, scaling; from rows as they are recorded."""

from __future__ import annotations

import math
from typing import Any

import bench_machines as made
import bench_runs as recorded
import pytest
from bench_runs import run

from envcheck.bench.records import BenchResult, RowResult
from envcheck.bench.results import results
from envcheck.facts.bench import RowRun


def judged(*runs: RowRun, **machine: Any) -> BenchResult:
    found = results(recorded.snapshot(*runs, **machine))
    assert found is not None
    return found


def by_name(found: BenchResult) -> dict[str, RowResult]:
    return {one.run.row.name: one for one in found.rows}


def test_a_speed_up_is_over_fp32_and_only_where_it_is_proven() -> None:
    found = by_name(
        judged(
            run(400),
            run(800, precision="tf32"),
            run(1200, precision="amp"),
            run(2000, "compiled", precision="amp", compiled=True),
        )
    )
    assert found["resnet50 amp 256"].speed_up == pytest.approx(3.0)
    assert found["resnet50 amp 256"].against == "resnet50 fp32 256"
    assert found["resnet50 amp 256"].proof_words == (
        "158 of 158 convolutions and 3 of 3 products in FP16"
    )
    assert found["resnet50 tf32 256"].speed_up == pytest.approx(2.0)
    assert found["compiled"].speed_up == pytest.approx(5.0)
    assert found["resnet50 fp32 256"].speed_up is None
    assert found["resnet50 fp32 256"].proof == "nothing-to-engage"


@pytest.mark.parametrize(
    ("base", "spread", "amp", "expected"),
    [
        (100, 1.3, 31, None),  # seen: x0.31 at +-133 %
        (100, 0.5, 143, None),  # seen: x1.43 at +-42 to 52 %
        (100, 0.02, 143, 1.43),
        (100, 0.02, 102, None),
    ],
)
def test_a_speed_up_inside_its_noise_is_none(
    base: float, spread: float, amp: float, expected: float | None
) -> None:
    rows = by_name(judged(run(base, spread=spread), run(amp, precision="amp", spread=spread)))
    found = rows["resnet50 amp 256"]
    assert found.proof == "engaged" and found.against == "resnet50 fp32 256"
    assert found.speed_up == (expected and pytest.approx(expected))


@pytest.mark.parametrize(
    ("evidence", "proof", "words"),
    [
        ({"convolutions": 158, "half_convolutions": 0}, "not-engaged", "0 of 158 convolutions"),
        (
            {"convolutions": 9, "half_convolutions": 0, "products": 3, "half_products": 3},
            "not-engaged",
            "0 of 9 convolutions and 3 of 3 products",
        ),
        ({"hidden_by_compiler": True}, "not-known", "the compiler hides"),
        (
            {"convolutions": 9, "half_convolutions": 9, "hidden_by_compiler": True},
            "not-known",
            "the compiler hides",
        ),
        ({}, "not-known", ""),
        ({"loss_scale": 1.0}, "not-known", "no types were seen"),
        ({"convolutions": "many", "half_convolutions": True}, "not-known", "no types"),
        ({"convolutions": -5, "products": math.inf}, "not-known", "no types"),
    ],
)
def test_amp_that_is_not_proven_has_no_speed_up(
    evidence: dict[str, Any], proof: str, words: str
) -> None:
    found = by_name(judged(run(400), run(1200, precision="amp", evidence=evidence)))
    amp = found["resnet50 amp 256"]
    assert amp.proof == proof and words in amp.proof_words and amp.speed_up is None
    assert amp.rate is not None


def _like_published(rate: float, **changes: Any) -> RowRun:
    """The row that TensorFlow's container 20.06 was measured with: 2,375 images/s."""
    return run(
        rate, "amp xla", precision="amp", compiled=True, style="session", batch=256, **changes
    )


@pytest.mark.parametrize(
    ("rate", "spread", "verdict", "words"),
    [
        (2375, 0.01, "pass", "as 2,375 images/s"),
        (3000, 0.01, "pass", "126% of 2,375"),
        (2300, 0.01, "pass", "97% of 2,375"),
        (2200, 0.01, "warn", "7% below 2,375 images/s (published: A100 40GB SXM4, AMP"),
        (1900, 0.01, "fail", "20% below 2,375"),
        (1900, 0.5, "", "not judged: its repetitions go from"),
    ],
)
def test_a_row_is_judged_by_what_fits(rate: float, spread: float, verdict: str, words: str) -> None:
    found = judged(_like_published(rate, spread=spread)).rows[0]
    assert found.verdict == verdict and words in found.verdict_words
    assert found.references[0].rate == 2375
    assert found.unsteady == (spread > 0.1)


def test_a_gpu_below_its_peers_is_named() -> None:
    there = made.gpus("a100", 4)
    addresses = [f"0000:0{n}:00.0" for n in (1, 2, 3, 4)]
    rates = [1000, 1010, 930, 1005]
    alone = [
        run(rate, f"amp on GPU {number}", gpus=[address], precision="amp")
        for number, (rate, address) in enumerate(zip(rates, addresses, strict=True))
    ]
    job = run(3500, "together", gpus=addresses, together="ddp", precision="amp")
    found = judged(*alone, job, there=there)
    rows = by_name(found)
    assert rows["amp on GPU 2"].verdict == "warn"
    assert "the other GPUs: median of 3 other NVIDIA A100" in rows["amp on GPU 2"].verdict_words
    assert rows["amp on GPU 0"].verdict == "pass"
    (scaled,) = found.scaling
    assert scaled.efficiency == pytest.approx(3500 / 3945, rel=0.01)
    assert scaled.slowest == addresses[2] and scaled.slowest_words.startswith("GPU 2 runs at 93%")
