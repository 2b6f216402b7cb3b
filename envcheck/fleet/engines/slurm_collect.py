"""Asks a cluster's nodes through Slurm: one srun a node, which costs that node alone whatever it does.

The answer comes back through srun's own connection. A job ends with its srun, at its time limit, and by
scancel.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from ... import plugins, scratch, single_file
from ...install import processes
from ..folder import Outcome
from . import relay, slurm, slurm_nodes
from .collecting import ENDED, Members
from .slurm import SlurmQuestion
from .slurm_nodes import SlurmNodeState


def ask(
    members: Members,
    question: SlurmQuestion,
    say: Callable[[str], None],
    environ: Mapping[str, str],
) -> None:
    """Ask every node that Slurm gives what ``members.asked`` says, as of ansible_collect; no job stays.
    Raises UsageError, CouldNotLook."""
    slurm.refuse_ours(question.options)
    tools, asked = slurm.find(environ), members.asked
    nodes, asking = slurm.chosen(tools, question), []
    for node in nodes:
        found = slurm_nodes.closed(node)
        asking += [] if found else [node]
        members.put(node.name, slurm_nodes.groups(node), *(found or ("not-asked", ENDED)))
    asking.sort(key=lambda node: node.base in slurm_nodes.TAKEN)  # to be waited for, perhaps: last
    say(f"asking {len(asking)} of {len(nodes)} nodes by {tools.version()}")
    job, cookie = f"envcheck-{secrets.token_hex(6)}", secrets.token_hex(16)
    peers = [(node.name, node.address or node.name) for node in asking]
    commands = [
        slurm.command(tools, node, asked.filled(node.name, peers), question, job, cookie)
        for node in asking
    ]

    def ended(number: int, result: Any) -> None:
        node = asking[number]
        found = _found(node, result, question, cookie, asked.deadline)
        members.take(node.name, slurm_nodes.groups(node), found)

    with scratch.directory() as work, ExitStack() as ending:
        if not tools.is_in_job:  # srun's jobs may wait in the queue, or end at their limit
            scancel = [str(tools.scancel), f"--name={job}"]
            ending.callback(processes.run, scancel, deadline=20.0, env=tools.environ)
        given = work / "collector.py"
        given.write_bytes(single_file.build_script(plugins.probe_files()))
        processes.run_many(
            commands,
            at_once=question.at_once,
            env=tools.environ,
            stdin=given,
            launch=question.immediate + slurm.LAUNCH,
            mark=slurm.mark(cookie).encode(),
            deadline=asked.deadline + relay.MARGIN,
            limit=relay.LARGEST + (1 << 16),
            ended=ended,
            tick=members.tick,
        )


def _found(
    node: SlurmNodeState, result: Any, question: SlurmQuestion, cookie: str, deadline: float
) -> bytes | tuple[Outcome, str]:
    """As of ``relay.read``."""
    _, reached, answer = result.stdout.partition(f"{slurm.mark(cookie)}\n".encode())
    if not reached:
        return slurm.not_started(node, result, question)
    if result.outcome == "timeout":
        return relay.late(deadline)
    words = "" if answer.strip() else slurm.srun_words(result.stderr)
    found = relay.read(answer, cookie, deadline, words, result.code)
    return found if isinstance(found, bytes) else slurm.lost(result) or found
