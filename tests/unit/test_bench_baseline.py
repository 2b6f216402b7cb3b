"""`--baseline FILE`: the rows of a machine that was well, and what is refused as one."""

from __future__ import annotations

import bench_machines as made
import bench_runs as recorded
import msgspec
import pytest
from bench_runs import run

from envcheck.bench.baseline_file import read, refuse_other
from envcheck.bench.results import results
from envcheck.exit_codes import UsageError
from envcheck.facts import snapshot as snapshots
from envcheck.facts.snapshot import Snapshot


def _snapshot(rate: float, product: str = "a100", version: str = "2.9.0") -> Snapshot:
    return recorded.snapshot(
        msgspec.structs.replace(run(rate, precision="amp"), framework_version=version),
        there=made.gpus(product),
    )


def _json(snapshot: Snapshot) -> bytes:
    """As far as `--format json` has it."""
    found = results(snapshot)
    assert found is not None
    rows = [{"name": one.run.row.name, "result": one} for one in found.rows]
    return msgspec.json.encode({"schema": 1, "status": "healthy", "rows": rows})


def test_a_snapshot_and_a_bench_s_json_are_the_same_baseline() -> None:
    well, slow = _snapshot(1000), _snapshot(900)
    for data in (snapshots.dump(well), _json(well)):
        found = results(slow, read(data, "well.json"))
        assert found is not None and found.baseline == "well.json"
        assert found.rows[0].verdict == "warn"
        assert (
            found.rows[0].verdict_words
        ) == "10% below 1,000 images/s (the baseline: resnet50 amp 256)"


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
        results(_snapshot(900), read(_json(of), "well.json"))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "neither a Snapshot nor the JSON of a bench: it is empty"),
        (b'{"rows": []}', "no row of it was measured"),
        (b"{}", "neither a Snapshot"),
        (b"\xff\xfe", "neither a Snapshot"),
        (b"[" * 100000, "neither a Snapshot"),
        (b'{"rows": [{"result": {"run": 7}}]}', "neither a Snapshot"),
        (snapshots.dump(made.machine()), "this Snapshot has no bench"),
        (snapshots.dump(recorded.snapshot(run(0))), "no row of it was measured"),
    ],
)
def test_what_is_no_baseline_is_refused_in_one_sentence(data: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=r"^--baseline x: ") as refused:
        read(data, "x")
    assert words in str(refused.value)


def test_one_of_another_product_is_refused_before_anything_runs() -> None:
    here = _snapshot(900)
    assert here.target is not None and here.target.bench is not None
    assert here.target.bench.facts is not None
    rows = [one.row for one in here.target.bench.facts.rows]
    refuse_other(read(_json(_snapshot(1000)), "well.json"), rows, here)
    with pytest.raises(UsageError, match="it is of NVIDIA H100"):
        refuse_other(read(_json(_snapshot(1000, "h100")), "well.json"), rows, here)
