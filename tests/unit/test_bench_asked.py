"""What `envcheck bench` hands to the collector, of its command line and its plan."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from envcheck.bench.plan import BenchPlan
from envcheck.bench.request import BenchRequest
from envcheck.cli import bench_work, sources
from envcheck.facts.bench import BenchRow, LeftOut


@pytest.mark.parametrize("busy_ok", [True, False])
def test_the_plan_and_the_options_are_passed_on(
    monkeypatch: pytest.MonkeyPatch, busy_ok: bool
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(sources, "live", lambda target, **said: asked.update(said))
    options = argparse.Namespace(
        target=None, engine=None, entrypoint=None, quiet=True, busy_ok=busy_ok, batch=8,
        gpu=None, inference=False, data=None, rounds=None,
    )  # fmt: skip
    row = BenchRow(name="mlp fp32", what="mlp", model="mlp", style="torch")
    left_out = [LeftOut("peers", "there is 1 GPU")]
    plan = BenchPlan(
        rows=[row], systems=["links"], left_out=left_out, warm_up_seconds=3.5,
        repetition_seconds=0.25, deadline=77.0,
    )  # fmt: skip
    request = BenchRequest(what=["mlp", "links"], repetitions=7)
    bench_work.measure(options, request, plan, None)  # type: ignore[arg-type]
    work, bench = asked["work"], asked["work"].bench
    assert work.seconds == 77.0 and bench.rows == [row] and bench.left_out == left_out
    assert (bench.warm_up, bench.seconds, bench.repetitions) == (3.5, 0.25, 7)
    assert bench.busy_ok is busy_ok and asked["kernels"].busy_ok is busy_ok
    assert bench.options == (["--busy-ok"] if busy_ok else []) + ["--batch", "8"]
