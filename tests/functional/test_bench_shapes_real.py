"""`envcheck bench shapes` in real frameworks on the CPU (opt-in: pytest -m slow)."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli import envcheck
from processes import PATIENCE
from real_targets import real_target

from envcheck.bench import shapes
from envcheck.facts import snapshot as snapshots

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["tensorflow-1.15", "tensorflow-2.15", "torch", "jax"])
def test_every_shape_is_measured_in_every_round(tmp_path: Path, name: str) -> None:
    kept = tmp_path / "snapshot.json"
    ran = envcheck(
        "bench", "shapes", "--target", real_target(name), "--save", kept, timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stderr.decode()
    target = snapshots.load(kept.read_bytes()).target
    assert target is not None and target.bench is not None and target.bench.facts is not None
    (run,) = target.bench.facts.rows
    assert (run.outcome, run.reason) == ("ok", "")
    assert len(run.shapes) == 10
    assert all(len(one.seconds) == shapes.ROUNDS and not one.reason for one in run.shapes)
    result = shapes.shapes_of(run)
    assert result is not None
    assert {one.shape.edge for one in result.shapes} == {63, 64, 65, 72, 80}
    assert all(one.tflops and one.unit == "unknown" for one in result.shapes)
