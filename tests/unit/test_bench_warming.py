"""When a training is warm: rates that rise, wobble, fall and never rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from envcheck.collector.bench.warming import CHUNK, Warming


def warmed(rate: Callable[[float], float], limit: float = 20.0) -> Warming:
    """A training whose first step takes ``first`` seconds, and whose rate then is rate(seconds since)."""
    warming, now = Warming(limit), 0.0
    steps = warming.next()
    warming.ran(steps, 3.0)
    while steps := warming.next():
        took = steps / rate(now)
        now += took
        warming.ran(steps, took)
    return warming


def test_a_constant_rate_is_steady_in_a_second() -> None:
    warming = warmed(lambda _now: 100.0)
    assert warming.steady and warming.rate == pytest.approx(100.0)
    assert warming.seconds - 3.0 == pytest.approx(6 * CHUNK, rel=0.3)


def test_a_rate_that_rises_is_waited_for() -> None:
    warming = warmed(lambda now: 100.0 * min(1.0, 0.2 + now / 5))
    assert warming.steady and warming.rate == pytest.approx(100.0, rel=0.03)
    assert warming.seconds > 3.0 + 4.0


def test_what_never_rests_ends_at_the_limit() -> None:
    leaps = iter([1.0, 1.0, 2.0, 2.0] * 1000)
    warming = warmed(lambda _now: 100.0 * next(leaps), limit=5.0)
    assert not warming.steady and 8.0 <= warming.seconds < 9.0
