"""What sinfo and scontrol say, read: states of several versions, partitions, switches, host lists."""

from __future__ import annotations

import pytest

from envcheck.fleet.engines import slurm_nodes
from envcheck.fleet.engines.slurm_nodes import SlurmNodeState

USUAL = """\
gpu01|a100*|up|idle|gpu:a100:8(S:0-1)|a100,ib|none
gpu01|all|up|idle|gpu:a100:8(S:0-1)|a100,ib|none
gpu02|a100*|up|drained|gpu:8,nic:2|(null)|GPU 3 fell | off the bus
login1|test|drain|down*|(null)|(null)|Not responding
"""


def node(state: str, reason: str = "") -> SlurmNodeState:
    return SlurmNodeState("gpu01", state, reason)


def test_nodes_with_all_their_partitions_the_default_first() -> None:
    first, second, third = slurm_nodes.nodes(USUAL)
    assert first == SlurmNodeState("gpu01", "idle", "", ("a100", "all"), ("a100", "ib"), 8)
    assert (second.gpus, second.features, second.reason) == (8, (), "GPU 3 fell | off the bus")
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
    assert slurm_nodes.nodes(f"n|p|up|idle|{gres}|(null)|none")[0].gpus == count


@pytest.mark.parametrize(
    "state",
    ["idle", "mixed", "MIXED-", "allocated", "allocated+", "completing", "reserved", "maint",
     "idle$", "planned", "IDLE", "idle+cloud", "something-new", "mix-", "alloc", "idle#"],
)  # fmt: skip
def test_states_in_which_slurm_may_start_a_job(state: str) -> None:
    assert slurm_nodes.closed(node(state)) is None


@pytest.mark.parametrize(
    ("state", "outcome", "told"),
    [
        ("down", "unreachable", "Slurm has it as down: no such board"),
        ("DOWN*", "unreachable", "Slurm has it as down: no such board"),
        ("down+drain", "unreachable", "Slurm has it as down+drain: no such board"),
        ("idle*", "unreachable", "Slurm has it as idle: no such board"),
        ("unknown", "unreachable", "Slurm has it as unknown: no such board"),
        ("future", "unreachable", "Slurm has it as future: no such board"),
        ("drained", "not-asked", "Slurm has it as drained: no such board"),
        ("drained*", "unreachable", "Slurm has it as drained: no such board"),
        ("draining", "not-asked", "Slurm has it as draining: no such board"),
        ("drng", "not-asked", "Slurm has it as drng: no such board"),
        ("inval", "not-asked", "Slurm has it as inval: no such board"),
        ("fail", "not-asked", "Slurm has it as fail: no such board"),
        ("idle~", "not-asked", "Slurm has it as idle, powered down: no such board"),
        ("idle%", "not-asked", "Slurm has it as idle, powered down: no such board"),
        ("mixed@", "not-asked", "Slurm has it as mixed, to be restarted: no such board"),
        ("reboot^", "not-asked", "Slurm has it as reboot, to be restarted: no such board"),
    ],
)
def test_states_in_which_it_starts_none(state: str, outcome: str, told: str) -> None:
    assert slurm_nodes.closed(node(state, "no such board")) == (outcome, told)
