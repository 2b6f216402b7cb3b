"""envcheck bench and envcheck soak on a real GPU (opt-in: pytest -m gpu).

With ENVCHECK_RUN=FOLDER what tests/gpu/first.sh has kept there is judged, and not another run.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from machine import envcheck, on_a_gpu

from envcheck.facts.bench import RowRun
from envcheck.facts.snapshot import load

pytestmark = on_a_gpu

TARGET = os.environ.get("ENVCHECK_TARGET", sys.executable)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds bench.json and bench.report.json."""
    folder = Path(os.environ.get("ENVCHECK_RUN") or tmp_path_factory.mktemp("bench"))
    if not (folder / "bench.json").exists():
        arguments = ["mlp", "--rounds", "3", "--target", TARGET, "--exit-zero", "--format", "json"]
        ended = envcheck("bench", *arguments, "--save", folder / "bench.json")
        (folder / "bench.report.json").write_bytes(ended.stdout)
    return folder


@pytest.fixture(scope="module")
def rows(kept: Path) -> list[RowRun]:
    target = load((kept / "bench.json").read_bytes()).target
    assert target is not None and target.bench is not None and target.bench.facts is not None
    return list(target.bench.facts.rows)


def test_the_bench_says_the_same_from_its_snapshot(kept: Path) -> None:
    again = envcheck("bench", "--from", kept / "bench.json", "--format", "json", "--exit-zero")
    live = json.loads((kept / "bench.report.json").read_bytes())
    assert json.loads(again.stdout) == live


def test_rows_on_a_gpu_have_their_samples(rows: list[RowRun]) -> None:
    well = [run for run in rows if run.outcome == "ok" and run.row.gpus]
    assert well, [(run.row.name, run.outcome, run.reason) for run in rows]
    for run in well:
        assert run.repetitions and run.samples, run.row.name
        assert "power_w" in run.samples[0].values, run.row.name


def test_no_row_ends_without_a_reason(rows: list[RowRun]) -> None:
    assert not [run.row.name for run in rows if run.outcome != "ok" and not run.reason]
    assert not [run.row.name for run in rows if run.outcome in ("crashed", "timeout")]
