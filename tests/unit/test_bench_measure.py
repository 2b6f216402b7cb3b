"""When a training is warm: rates that rise, wobble, fall and never rest. What is left, and samples."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bench_world import row

from envcheck.collector.bench.running import samples
from envcheck.collector.bench.running.left import TimeLeft
from envcheck.collector.bench.running.measure import CHUNK, MOST_STEPS, Warming, steps_in


def warmed(rate: Callable[[float], float], first: float = 3.0, limit: float = 20.0) -> Warming:
    """A training whose first step takes ``first`` seconds, and whose rate then is rate(seconds since)."""
    warming, now = Warming(limit), 0.0
    steps = warming.next()
    warming.ran(steps, first)
    while steps := warming.next():
        took = steps / rate(now)
        now += took
        warming.ran(steps, took)
    return warming


def test_a_constant_rate_is_steady_in_a_second() -> None:
    warming = warmed(lambda _now: 100.0)
    assert warming.steady and warming.rate == pytest.approx(100.0)
    assert warming.seconds - 3.0 == pytest.approx(6 * CHUNK, rel=0.3)


def test_the_first_step_counts_for_nothing() -> None:
    assert warmed(lambda _now: 100.0, first=300.0, limit=10.0).steady


def test_a_rate_that_rises_is_waited_for() -> None:
    warming = warmed(lambda now: 100.0 * min(1.0, 0.2 + now / 5))
    assert warming.steady and warming.rate == pytest.approx(100.0, rel=0.03)
    assert warming.seconds > 3.0 + 4.0


def test_a_rate_that_falls_is_waited_for() -> None:
    warming = warmed(lambda now: 100.0 * max(0.5, 1.0 - now / 8))
    assert warming.steady and warming.rate == pytest.approx(50.0, rel=0.03)


def test_what_wobbles_around_one_rate_is_steady() -> None:
    wobble = iter([1.0, 1.08, 0.94, 1.03, 0.97, 1.05] * 1000)
    assert warmed(lambda _now: 100.0 * next(wobble)).steady


def test_what_never_rests_ends_at_the_limit() -> None:
    leaps = iter([1.0, 1.0, 2.0, 2.0] * 1000)
    warming = warmed(lambda _now: 100.0 * next(leaps), limit=5.0)
    assert not warming.steady and 8.0 <= warming.seconds < 9.0
    assert warming.told()["steady"] is False and warming.told()["steps"] == warming.steps


def test_one_step_longer_than_the_limit() -> None:
    warming = warmed(lambda _now: 0.02, first=60.0)
    assert warming.steps == 2 and not warming.steady


def test_steps_are_at_least_one_and_bounded() -> None:
    assert steps_in(2.0, 0.01) == 1 and steps_in(2.0, 100.0) == 200
    assert steps_in(2.0, 1e12) == MOST_STEPS


def test_what_is_left_falls_as_rows_are_done() -> None:
    left = TimeLeft([row("a"), row("b"), row("c", steps=50)], repetitions=5, seconds=2.0)
    lefts = [left.seconds]
    left.took("a", "import", 3.0)
    lefts.append(left.seconds)
    left.took("a", "build", 2.0)
    for _round in range(5):
        left.took("a", "measure", 2.0)
        lefts.append(left.seconds)
    left.over("a")
    left.over("b")
    lefts.append(left.seconds)
    left.over("c")
    lefts.append(left.seconds)
    assert lefts == sorted(lefts, reverse=True) and lefts[-1] == 0


def test_what_is_left_learns_from_what_was_seen() -> None:
    left = TimeLeft([row("a"), row("b")], repetitions=5, seconds=2.0)
    before = left.seconds
    left.took("a", "import", 40.0)
    assert left.seconds == pytest.approx(before - 20.0 + 40.0)  # b's import, too
    left.took("nobody", "import", 1.0)
    searching = TimeLeft([row("a", largest=True)], repetitions=5, seconds=2.0)
    before = searching.seconds
    searching.done("a", "batch")
    assert searching.seconds < before


def told(seconds: list[float], **values: list[float | None]) -> dict[str, object]:
    return {"gpu": "g", "seconds": seconds, "values": values}


def test_samples_of_several_pieces_are_joined() -> None:
    one = told([1.0], power_w=[100.0])
    two = told([2.0], power_w=[200.0], temperature_c=[50.0])
    assert samples.joined([one], [two]) == [
        told([1.0, 2.0], power_w=[100.0, 200.0], temperature_c=[None, 50.0])
    ]


def test_too_many_samples_become_fewer_neighbour_by_neighbour() -> None:
    count = 1501
    many = told(
        [float(number) for number in range(count)],
        power_w=[100.0, 200.0, None] * 500 + [100.0],
        throttle_reasons=[0, 4] * 750 + [1],
        other_processes=[0, 1] * 750 + [0],
    )
    (found,) = samples.joined([], [many])
    assert len(found["seconds"]) == 376 and {len(one) for one in found["values"].values()} == {376}
    assert found["values"]["throttle_reasons"][0] == 4  # nothing that was seen is lost
    assert found["values"]["other_processes"][0] == 1
    assert found["values"]["power_w"][0] == pytest.approx(125.0)
