"""`--baseline FILE`: the rows of a machine that was well, and what is refused as one."""

from __future__ import annotations

import bench_machines as made
import bench_runs as recorded
import msgspec
import pytest
from bench_runs import run

from envcheck.bench.baseline import Baseline
from envcheck.bench.baseline_file import read
from envcheck.bench.results import results
from envcheck.exit_codes import UsageError
from envcheck.facts import snapshot as snapshots
from envcheck.facts.snapshot import Snapshot


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
