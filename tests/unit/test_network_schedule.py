"""The rounds in which machines meet: each pair once, no machine twice in a round, fewer rounds for many."""

from __future__ import annotations

import pytest

from envcheck.collector.systems.network import partner, rounds
from envcheck.collector.systems.network.meeting import hubs
from envcheck.fleet.network.planning import in_rounds


@pytest.mark.parametrize("machines", [2, 3, 4, 7, 16, 33])
def test_every_pair_meets_once_and_no_machine_has_two_partners(machines: int) -> None:
    met = []
    for number in rounds(machines):
        for one in range(machines):
            other = partner(one, number, machines)
            assert other is None or partner(other, number, machines) == one != other
            if other is not None and one < other:
                met.append((one, other))
    assert len(met) == len(set(met)) == machines * (machines - 1) // 2


@pytest.mark.parametrize(("machines", "each"), [(34, 12), (100, 14), (999, 20), (1000, 20)])
def test_of_many_machines_each_meets_a_few(machines: int, each: int) -> None:
    chosen = rounds(machines)
    assert len(chosen) == len(set(chosen)) == each
    for one in range(machines):
        met = [partner(one, number, machines) for number in chosen]
        known = [other for other in met if other is not None]
        assert len(known) == len(set(known)) >= each - 1


def test_the_hubs_are_different_machines() -> None:
    assert [hubs(machines) for machines in (2, 3, 16)] == [[0, 1], [0, 1, 2], [0, 5, 10]]


def test_pairs_that_are_tried_again_do_not_share_a_machine_in_a_round() -> None:
    pairs = [("a", "b"), ("a", "c"), ("b", "c"), ("d", "e")]
    assert in_rounds(pairs) == [[("a", "b"), ("d", "e")], [("a", "c")], [("b", "c")]]
