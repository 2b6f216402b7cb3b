"""`envcheck bench parity` in real frameworks on the CPU, one for each style (opt-in: pytest -m slow)."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli import envcheck
from processes import PATIENCE
from real_targets import real_target

from envcheck.bench.parity import AGREE, ParityCurve, parities
from envcheck.facts import snapshot as snapshots

pytestmark = pytest.mark.slow


def _curves(folder: Path, name: str) -> tuple[dict[str, ParityCurve], str]:
    """By their rows' names, and what was printed."""
    kept = folder / "snapshot.json"
    ran = envcheck(
        "bench", "parity", "--target", real_target(name), "--save", kept, timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stdout.decode() + ran.stderr.decode()
    target = snapshots.load(kept.read_bytes()).target
    assert target is not None and target.bench is not None and target.bench.facts is not None
    runs = target.bench.facts.rows
    assert runs and all(run.outcome == "ok" and len(run.losses) == 60 for run in runs)
    found = {curve.name: curve for one in parities(runs) for curve in one.curves}
    return found, " ".join(ran.stdout.decode().split())


@pytest.mark.parametrize("name", ["tensorflow-2.15", "tensorflow-newest", "torch", "jax"])
def test_amp_agrees_by_far_and_a_stuck_scaler_parts_by_far(tmp_path: Path, name: str) -> None:
    found, text = _curves(tmp_path, name)
    amp, stuck, half = (found[f"parity {one}"] for one in ("amp", "amp stuck scaler", "half"))
    assert amp.distance is not None and amp.distance < AGREE / 2, amp.words
    assert stuck.distance is not None and stuck.distance > 3 * AGREE, stuck.words
    assert half.distance is None or half.distance > amp.distance, half.words
    assert "AMP agrees with FP32" in text and "as a control must" in text
    assert "BEN-005" not in text


def test_a_tensorflow_whose_cpu_has_no_amp_fails_nothing(tmp_path: Path) -> None:
    found, text = _curves(tmp_path, "tensorflow-1.15")
    assert not found and "BEN-005" not in text
    assert "No other mode's losses are there" in text
