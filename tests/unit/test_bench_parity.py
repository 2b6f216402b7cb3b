"""Losses from one seed that agree, and some that must not: made-up curves."""

from __future__ import annotations

import math
import random
from typing import Any

import bench_runs as recorded
import pytest

from envcheck.bench.parity import AGREE, ParityCurve, distance, label, parities, smoothed
from envcheck.bench.results import results
from envcheck.facts.bench import RowRun

STEPS = 100


def falling(steps: int = STEPS, noise: float = 0.2, last: float = 0.5) -> list[float]:
    chance = random.Random(1)
    return [
        last + (2.3 - last) * math.exp(-step / 30) + noise * chance.uniform(-1, 1)
        for step in range(steps)
    ]


def off(losses: list[float], share: float) -> list[float]:
    """The same, off by about that share, to both sides."""
    chance = random.Random(2)
    return [loss * (1 + share * chance.choice((-1, 1))) for loss in losses]


def run(losses: list[Any], evidence: dict[str, Any] | None = None, **changes: Any) -> RowRun:
    fields = {
        "what": "parity",
        "model": "mnist",
        "batch": 64,
        "image": 28,
        "steps": STEPS,
        **changes,
    }
    made = recorded.run(1.0, repetitions=0, evidence=evidence or {}, **fields)
    return RowRun(row=made.row, outcome="ok", losses=losses, evidence=made.evidence)


def curves(*others: RowRun, losses: list[Any] | None = None) -> dict[str, ParityCurve]:
    reference = run(falling() if losses is None else losses)
    (found,) = parities([reference, *others])
    assert found.reference == reference.row.name
    return {one.label: one for one in found.curves}


AMP = {"precision": "amp"}
STUCK = {"precision": "amp", "scaler": "stuck", "name": "stuck"}
HALF = {"precision": "half", "half": "bfloat16"}


def test_amp_and_tf32_agree() -> None:
    found = curves(
        run(off(falling(), 0.002), **AMP),
        run(off(falling(), 0.0001), precision="tf32"),
        run(falling(last=2.3), **STUCK),  # controls of Snapshots before 0.3
        run(falling(last=0.6), **HALF),
    )
    assert {name: one.agreement for name, one in found.items()} == {
        "AMP": "agrees",
        "TF32": "agrees",
    }
    assert found["AMP"].distance is not None and 0 < found["AMP"].distance < 0.002
    assert (
        found["AMP"].words.startswith("at most 0.") and "% from FP32, at step" in found["AMP"].words
    )


def test_amp_that_does_not_train_parts() -> None:
    assert curves(run(falling(last=2.3), **AMP))["AMP"].agreement == "parts"


def test_losses_near_nothing_are_held_against_where_they_began() -> None:
    near = [2.3 * math.exp(-step / 8) for step in range(STEPS)]
    found = curves(run([loss + 0.001 for loss in near], **AMP), losses=near)
    assert found["AMP"].agreement == "agrees"


def test_a_curve_may_lag_by_the_steps_that_its_scaler_skipped() -> None:
    steep = [2.3 * math.exp(-step / 20) + 0.5 for step in range(STEPS)]
    late = steep[:1] * 3 + steep[:-3]
    assert curves(run(late, **AMP), losses=steep)["AMP"].agreement == "parts"
    lagging = run(late, evidence={"skipped_steps": 3}, **AMP)
    assert curves(lagging, losses=steep)["AMP"].agreement == "agrees"
    # All skipped is no lag.
    stuck = run(steep[:1] * STEPS, evidence={"skipped_steps": STEPS}, **AMP)
    assert curves(stuck, losses=steep)["AMP"].agreement == "parts"


def test_a_loss_that_is_no_number_parts_where_that_began() -> None:
    losses: list[Any] = [*falling(40), *[None] * 60]
    found = curves(run(losses, **AMP))["AMP"]
    assert (found.agreement, found.at, found.distance) == ("parts", 41, None)
    assert found.words == "its loss is no number from step 41 on"
    assert len(found.smoothed) == 40


@pytest.mark.parametrize("losses", [[], falling(5), [None] * STEPS, [*falling(60), None]])
def test_without_a_reference_nothing_is_judged(losses: list[Any]) -> None:
    found = curves(run(falling(), **AMP), losses=losses)["AMP"]
    assert (found.agreement, found.distance) == ("not-judged", None)
    assert "has no curve" in found.words


def test_few_steps_are_not_judged() -> None:
    assert curves(run(falling(19), **AMP))["AMP"].agreement == "not-judged"
    assert curves(run([], **AMP))["AMP"].words == "it has 0 steps"
    dead = run(falling(), **AMP)
    dead = RowRun(row=dead.row, outcome="crashed", losses=dead.losses)
    assert curves(dead)["AMP"].agreement == "not-judged"


def test_rows_of_another_seed_or_framework_are_held_against_their_own() -> None:
    rows = [
        run(falling(), name=f"{style} {mode['precision']}", style=style, **mode)
        for style in ("torch", "keras")
        for mode in ({"precision": "fp32"}, AMP)
    ]
    first, second = parities(rows)
    assert [first.reference, first.curves[0].name] == ["torch fp32", "torch amp"]
    assert [second.reference, second.curves[0].name] == ["keras fp32", "keras amp"]
    assert parities(rows[:1]) == []
    assert parities([run(falling()), run(falling(), seed=7, **AMP)]) == []
    assert parities([run(falling()), run(falling(), **{**AMP, "steps": 0})]) == []


def test_hostile_losses_cost_nothing() -> None:
    for losses in ([1e308] * STEPS, [math.nan] * STEPS, [-1e29] * STEPS, [0.0] * STEPS):
        for other in (falling(), losses):
            for one in curves(run(other, **AMP), losses=losses).values():
                assert one.distance is None or math.isfinite(one.distance)
    stuck = run(falling(), evidence={"skipped_steps": -5}, **AMP)
    assert curves(stuck)["AMP"].agreement == "agrees"


def test_curves_are_means_of_the_steps_behind() -> None:
    assert smoothed([]) == []
    assert smoothed([4.0, 2.0]) == [4.0, 2.0]
    assert smoothed([float(n) for n in range(30)])[-1] == pytest.approx(28.0)
    assert distance([], [1.0]) == (0.0, 0)
    assert distance([2.0, 1.0], [2.0, 1.5]) == (0.5, 2)
    assert 0 < AGREE < 0.1


def test_labels_say_what_a_row_is() -> None:
    assert label(recorded.row(precision="amp", compiled=True)) == "AMP compiled"
    assert label(recorded.row(precision="amp", compiled=True, style="jax")) == "AMP"


def test_a_bench_tells_its_parity() -> None:
    snapshot = recorded.snapshot(run(falling()), run(falling(), **AMP), run(falling(), **STUCK))
    found = results(snapshot)
    assert found is not None
    (told,) = found.parity
    assert [one.agreement for one in told.curves] == ["agrees"]
