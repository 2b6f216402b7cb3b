"""What sinfo and scontrol say, read: states of several versions, partitions, switches, host lists."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from envcheck.fleet.engines import slurm_nodes
from envcheck.fleet.engines.slurm_nodes import SlurmNodeState

USUAL = """\
gpu01|a100*|up|idle|gpu:a100:8(S:0-1)|a100,ib|gpu01|Unknown|none
gpu01|all|up|idle|gpu:a100:8(S:0-1)|a100,ib|gpu01|Unknown|none
gpu02|a100*|up|drained|gpu:8,nic:2|(null)|gpu02|2026-11-23T06:18:15|GPU 3 fell | off the bus
login1|test|drain|down*|(null)|(null)|login1|Unknown|Not responding
no row
|||||||||
"""


def node(state: str, reason: str = "") -> SlurmNodeState:
    return SlurmNodeState("gpu01", state, reason)


def test_nodes_with_all_their_partitions_the_default_first() -> None:
    first, second, third = slurm_nodes.nodes(USUAL)
    assert first == SlurmNodeState(
        "gpu01", "idle", "", ("a100", "all"), ("a100", "ib"), 8, None, "gpu01"
    )
    assert (second.gpus, second.features, second.reason) == (8, (), "GPU 3 fell | off the bus")
    assert second.since == datetime(2026, 11, 23, 6, 18, 15, tzinfo=timezone.utc)
    assert third.partitions == ("test",)  # takes no jobs, and there is no other


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("(null)", 0),
        ("gpu:8", 8),
        ("gpu:h100:8(S:0-1)", 8),
        ("gpu:h100:4(S:0,2),gpu:1g.10gb:7(S:1)", 11),
        ("nic:2,gpu:tesla:2", 2),
        ("gpu", 0),
        ("gpu:many", 0),
        ("gpu:²", 0),
        ("gpu:8(((((", 0),
    ],
)
def test_how_many_gpus_a_node_has(gres: str, count: int) -> None:
    assert slurm_nodes.nodes(f"n|p|up|idle|{gres}|(null)|n|Unknown|none")[0].gpus == count


@pytest.mark.parametrize("state", ["idle", "MIXED-", "allocated+", "idle$", "something-new"])
def test_states_in_which_slurm_may_start_a_job(state: str) -> None:
    assert slurm_nodes.closed(node(state)) is None


@pytest.mark.parametrize(
    ("state", "outcome", "shown"),
    [
        ("DOWN*", "unreachable", "down"),
        ("down+drain", "unreachable", "down+drain"),
        ("idle*", "unreachable", "idle"),
        ("drained", "not-asked", "drained"),
        ("drained*", "unreachable", "drained"),
        ("DRAINING", "not-asked", "draining"),
        ("idle~", "not-asked", "idle, powered down"),
        ("mixed@", "not-asked", "mixed, to be restarted"),
    ],
)
def test_states_in_which_it_starts_none(state: str, outcome: str, shown: str) -> None:
    reason = f"Slurm has it as {shown}: no such board"
    assert slurm_nodes.closed(node(state, "no such board")) == (outcome, reason)
