"""The checks on a bench, and `--baseline FILE`: faults put into recorded rows, healthy rows, other rows."""

from __future__ import annotations

from typing import Any

import bench_machines as made
import bench_runs as recorded
import h100
import msgspec
import pytest
import whole
from bench_runs import run, samples

from envcheck.bench.baseline import Baseline
from envcheck.bench.baseline_file import read
from envcheck.bench.results import results
from envcheck.checks.engine import diagnose
from envcheck.exit_codes import UsageError
from envcheck.facts import snapshot as snapshots
from envcheck.facts.bench import RowRun
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import BENCH, CheckResult, Finding

ADDRESSES = [f"0000:0{n}:00.0" for n in (1, 2, 3, 4)]


def judged(snapshot: Snapshot) -> dict[str, CheckResult]:
    again = snapshots.load(snapshots.dump(snapshot))
    return {one.code: one for one in diagnose(again).results if one.area == "bench"}


def found(*runs: RowRun, **machine: Any) -> dict[str, CheckResult]:
    return judged(recorded.snapshot(*runs, **machine))


def only(results: dict[str, CheckResult], code: str) -> Finding:
    """The one finding of one check, with all others well or skipped."""
    assert {one.code for one in results.values() if one.findings} == {code}
    (finding,) = results[code].findings
    return finding


def _published(rate: float, **changes: Any) -> RowRun:
    return run(rate, "amp xla", precision="amp", compiled=True, style="session", **changes)


def _base(**changes: Any) -> RowRun:
    return run(400, "fp32", style="session", **changes)


def _four(rates: list[float], together: float = 3700, **changes: Any) -> list[RowRun]:
    alone = [
        run(rate, f"amp on GPU {n}", gpus=[ADDRESSES[n]], precision="amp", **changes)
        for n, rate in enumerate(rates)
    ]
    job = run(together, "job", gpus=ADDRESSES, together="ddp", precision="amp", **changes)
    return [run(400), *alone, job]


HEALTHY: list[list[RowRun]] = [
    [_base(), _published(2400)],
    [run(400), run(800, precision="tf32"), run(1200, precision="amp")],
    _four([1000, 1005, 990, 1010]),
    [run(50, gpus=[], small=True, image=32, spread=0.9)],
    [run(400), run(1200, precision="amp", evidence={"hidden_by_compiler": True})],
    [
        run(400),
        msgspec.structs.replace(run(0, "b"), outcome="out-of-memory"),
        msgspec.structs.replace(run(0, "c"), outcome="not-supported", reason="no compiler"),
        msgspec.structs.replace(run(0, "stopped"), outcome="interrupted", reason="by its user"),
    ],
    [run(100, model="mlp", what="mlp", image=0, gpus=ADDRESSES, together="ddp")],
]


@pytest.mark.parametrize("rows", HEALTHY)
def test_a_healthy_machine_gives_no_finding(rows: list[RowRun]) -> None:
    results = found(*rows, there=made.gpus("a100", 4))
    assert {one.outcome for one in results.values()} <= {"pass", "skipped"}
    assert "pass" in {one.outcome for one in results.values()}


@pytest.mark.parametrize("snapshot", [whole.whole(), h100.machine(), made.machine()])
def test_a_snapshot_without_a_bench_is_skipped_in_one_way(snapshot: Snapshot) -> None:
    results = judged(snapshot)
    assert results and {one.outcome for one in results.values()} == {"skipped"}
    assert {one.reason for one in results.values()} == {BENCH}


@pytest.mark.parametrize(("rate", "outcome"), [(2200, "warn"), (1900, "fail")])
def test_slower_than_published_is_found_with_the_suspect_and_a_way_on(
    rate: float, outcome: str
) -> None:
    hot = samples(throttle_reasons=[0x40] * 20 + [0] * 20)
    finding = only(found(_base(), _published(rate, samples=[hot])), "BEN-001")
    assert finding.level == outcome
    assert "below 2,375 images/s (published: A100 40GB SXM4" in finding.message
    assert "First suspect: thermal slowdown by the hardware in 50% of the samples." in (
        finding.message
    )
    assert finding.subject == "GPU 0 NVIDIA A100-SXM4-40GB at 0000:01:00.0"
    assert any("github.com" in (one.source or "") for one in finding.evidence)
    assert finding.remedy is not None and "TEMPERATURE" in finding.remedy.commands[0]
    unsuspected = only(found(_base(), _published(rate)), "BEN-001")
    assert unsuspected.remedy is not None
    assert unsuspected.remedy.commands[0] == "envcheck doctor --target venv --level deep"


def test_a_gpu_that_is_slower_than_its_peers_is_named() -> None:
    finding = only(found(*_four([1000, 1005, 900, 1010]), there=made.gpus("a100", 4)), "BEN-002")
    assert finding.level == "warn" and finding.subject.startswith("GPU 2 ")
    assert "10% below 1,005 images/s" in finding.message


def test_amp_that_does_nothing_is_a_failure() -> None:
    idle = {"convolutions": 158, "half_convolutions": 0, "products": 3, "half_products": 0}
    finding = only(found(run(400), run(410, precision="amp", evidence=idle)), "BEN-003")
    assert finding.level == "fail"
    assert "0 of 158 convolutions and 0 of 3 products in FP16" in finding.message


@pytest.mark.parametrize(
    ("outcome", "words"), [("crashed", "crashed"), ("timeout", "hung"), ("error", "failed")]
)
def test_a_row_that_died_is_a_failure_with_its_last_words(outcome: Any, words: str) -> None:
    dead = msgspec.structs.replace(run(0, "dead"), outcome=outcome, reason="signal 11")
    finding = only(found(run(400), dead), "BEN-004")
    assert finding.message == f"dead {words}: signal 11."
    assert finding.remedy is not None
    assert finding.remedy.commands == ["envcheck bench --target venv resnet50"]


def test_poor_scaling_is_found_with_the_slowest_by_name() -> None:
    there = made.gpus("a100", 4)
    finding = only(found(*_four([1000, 1005, 990, 1010], 2000), there=there), "BEN-007")
    assert "50% of what its GPUs do alone" in finding.message
    both = found(*_four([1000, 1005, 900, 1010], 2000), there=there)
    assert "GPU 2 runs at 90% of the others' median." in both["BEN-007"].findings[0].message
    other = _four([1000, 1005, 990, 1010], 2000, model="mlp", what="mlp", image=0)
    assert found(*other, there=there)["BEN-007"].outcome == "pass"


def test_a_loss_that_is_no_number_is_a_failure() -> None:
    good = msgspec.structs.replace(run(400), losses=[2.5, 1.5])
    bad = msgspec.structs.replace(run(1200, precision="amp"), losses=[2.5, None])
    assert found(good)["BEN-005"].outcome == "pass"
    assert only(found(good, bad), "BEN-005").cause.key == "loss-no-number"


def _snapshot(rate: float, product: str = "a100", version: str = "2.9.0") -> Snapshot:
    return recorded.snapshot(
        msgspec.structs.replace(run(rate, precision="amp"), framework_version=version),
        there=made.gpus(product),
    )


def _baseline(snapshot: Snapshot) -> Baseline:
    return read(snapshots.dump(snapshot), "well.json")


def test_a_row_below_the_baseline_is_a_warning() -> None:
    found = results(_snapshot(900), _baseline(_snapshot(1000)))
    assert found is not None and found.baseline == "well.json"
    row = found.rows[0]
    assert row.verdict == "warn"
    assert row.verdict_words == "10% below 1,000 images/s (the baseline: resnet50 amp 256)"


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (
            _snapshot(1000, "h100"),
            "it is of NVIDIA H100 80GB HBM3, and these rows ran on NVIDIA A1",
        ),
        (_snapshot(1000, version="2.8.0"), "it is of torch 2.8.0, and these rows ran in 2.9.0"),
        (
            recorded.snapshot(run(5, model="mlp", what="mlp", image=0)),
            "it has none of the rows that were run",
        ),
    ],
)
def test_a_baseline_of_something_else_is_refused(of: Snapshot, words: str) -> None:
    with pytest.raises(UsageError, match=r"^--baseline well\.json: ") as refused:
        results(_snapshot(900), _baseline(of))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no Snapshot: it is empty"),
        (b"{}", "no Snapshot"),
        (b"\xff\xfe", "no Snapshot"),
        (b"[" * 100000, "no Snapshot"),
        (snapshots.dump(made.machine()), "this Snapshot has no bench"),
        (snapshots.dump(recorded.snapshot(run(0))), "no row of it was measured"),
    ],
)
def test_what_is_no_baseline_is_refused_in_one_sentence(data: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=r"^--baseline x: ") as refused:
        read(data, "x")
    assert words in str(refused.value)
