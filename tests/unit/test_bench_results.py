"""What rows mean: proof, speed-up, utilisation, verdict, peers, published rates, and the first suspect."""

from __future__ import annotations

import math
from typing import Any

import bench_machines as made
import bench_runs as recorded
import pytest
from bench_runs import run, samples

from envcheck.bench.places import BenchGpu, bench_gpu
from envcheck.bench.records import BenchResult, ReferenceRate, RowResult
from envcheck.bench.references import published, references
from envcheck.bench.results import results
from envcheck.bench.suspects import suspect
from envcheck.data.gpu_names import capability_of
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


WELL: dict[str, Any] = {
    "sm_clock_mhz": 1410.0,
    "memory_clock_mhz": 1215.0,
    "temperature_c": 62.0,
    "power_w": 390.0,
    "throttle_reasons": 0.0,
    "other_processes": 0.0,
    "pcie_rx_mb_s": 900.0,
}
GPU = made.gpus(
    "a100",
    clock_sm_max_mhz=1410,
    clock_memory_max_mhz=1215,
    temperature_slowdown_c=92,
    power_limit_w=300.0,
    power_default_limit_w=400.0,
    pcie_gen_max=4,
    pcie_width=16,
)[0]


@pytest.mark.parametrize(
    ("seen", "kind", "words"),
    [
        ({"other_processes": [0.0] * 24 + [1.0] * 16}, "neighbour", "in 40% of the samples"),
        ({"throttle_reasons": [0x40] * 16 + [0] * 24}, "heat", "by the hardware in 40%"),
        ({"throttle_reasons": 0x20}, "heat", "by the driver in 100%"),
        ({"throttle_reasons": 0x80}, "power-brake", "power brake"),
        ({"throttle_reasons": 0x08}, "slowdown", "slowdown by the hardware"),
        ({"throttle_reasons": 0x02}, "clocks-set", "somebody has set"),
        ({"sm_clock_mhz": 1005.0}, "clocks-low", "the SM clock was 1,005 MHz, of 1,410 MHz"),
        ({"memory_clock_mhz": 405.0}, "clocks-low", "the memory's clock was 405 MHz"),
        ({"temperature_c": 90.0}, "heat", "it reached 90 °C, and slows down at 92 °C"),
        ({"pcie_rx_mb_s": 29000.0}, "pcie", "29.0 GB/s went to it"),
        ({"throttle_reasons": 0x04}, "power-cap", "lowered to 300 of 400 W in 100%"),
        ({"throttle_reasons": 0x04, "sm_clock_mhz": 1005.0}, "power-cap", "power limit"),
        ({"throttle_reasons": 0x44}, "heat", "thermal slowdown"),
    ],
)
def test_the_first_that_stands_out(seen: dict[str, Any], kind: str, words: str) -> None:
    row = run(100, samples=[samples(**{**WELL, **seen})])
    found = suspect(row, {"0000:01:00.0": GPU})
    assert found.kind == kind and words in found.words
