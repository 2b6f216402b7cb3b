"""Faults that a place shares: the tightest place, and no coincidence."""

from __future__ import annotations

import math
import random

import pytest

from envcheck.fleet.model import JudgedMachine, MachineProblem
from envcheck.fleet.shared import shared_faults, tail

HOT = MachineProblem(
    code="GPU-008", level="warn", title="", headline="is throttled", message="", kind="GPU-008 x"
)


def fleet(sick: set[int], silent: set[int] = frozenset(), count: int = 200) -> list[JudgedMachine]:  # type: ignore[assignment]
    """Twenty machines a rack, two racks a switch, all in one room; images by chance."""
    chance = random.Random(5)
    return [
        JudgedMachine(
            name=f"n{number:03}",
            state="silent" if number in silent else "healthy",
            answer="unreachable" if number in silent else "answered",
            product="p",
            problems=[HOT] if number in sick else [],
            groups=[
                ("group", f"rack{number // 20}"),
                ("switch", f"leaf{number // 40}"),
                ("room", "one"),
                ("image", f"image{chance.randint(1, 4)}"),
            ],
        )
        for number in range(count)
    ]


def test_a_sick_rack_is_named_and_nothing_around_it() -> None:
    (one,) = shared_faults(fleet(set(range(40, 60))), [])
    assert (one.kind, one.name, one.code, one.of, one.elsewhere) == (
        "group",
        "rack2",
        "GPU-008",
        20,
        0,
    )
    assert one.hosts == "n[040-059]" and one.about == "problem"


def test_two_racks_of_one_switch_are_the_switch() -> None:
    (one,) = shared_faults(fleet(set(range(80, 120))), [])
    assert (one.kind, one.name, one.of) == ("switch", "leaf2", 40)


def test_what_all_have_belongs_to_no_place() -> None:
    assert shared_faults(fleet(set(range(200))), []) == []


def test_three_by_chance_are_no_place() -> None:
    for seed in range(50):
        sick = set(random.Random(seed).sample(range(200), 12))
        assert shared_faults(fleet(sick), []) == []


def test_the_tail_is_the_hypergeometric_one() -> None:
    exact = sum(math.comb(5, k) * math.comb(15, 6 - k) / math.comb(20, 6) for k in range(3, 6))
    assert math.exp(tail(3, 6, 5, 20)) == pytest.approx(exact)
    assert tail(0, 6, 5, 20) == pytest.approx(0, abs=1e-9)
