"""Simulated fleets: who is the outlier is found, and nobody else is."""

from __future__ import annotations

import pytest
import simulated_fleet

from envcheck.facts import snapshot as snapshots
from envcheck.fleet.judging import judge_snapshot, unanswered
from envcheck.fleet.result import result


@pytest.mark.parametrize("seed", range(3))
def test_what_was_put_in_is_found_and_nothing_else(seed: int) -> None:
    machines, truth = simulated_fleet.simulated(seed, 200)
    judged = [
        judge_snapshot(one.member, snapshots.load(one.snapshot))[0]
        if one.snapshot
        else unanswered(one.member)
        for one in machines
    ]
    simulated_fleet.assert_found(result(judged), truth)
