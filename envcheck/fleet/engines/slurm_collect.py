"""Asks a cluster's nodes through Slurm: one srun a node, which costs that node alone whatever it does.

The answer comes back through srun's own connection. A job ends with its srun, at its time limit, and by
scancel.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from ... import plugins, scratch, single_file
from ...install import processes
from ..folder import Outcome
from . import relay, slurm, slurm_nodes
from .collecting import ENDED, Members
from .slurm import SlurmQuestion, SlurmTools
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
    tools = slurm.find(environ)
    nodes = slurm.chosen(tools, question)
    run = _SlurmRun(members, question)
    asking = run.sort_out(nodes)
    say(f"asking {len(asking)} of {len(nodes)} nodes by {tools.version()}")
    run.ask(tools, asking)


class _SlurmRun:
    def __init__(self, members: Members, question: SlurmQuestion) -> None:
        self.members, self._question = members, question
        self._cookie = secrets.token_hex(16)

    def sort_out(self, nodes: Sequence[SlurmNodeState]) -> list[SlurmNodeState]:
        """Those that can be asked, those that may have to be waited for last."""
        asking = []
        for node in nodes:
            found = slurm_nodes.closed(node)
            if found is None:
                asking.append(node)
            self._put(node, *(found or ("not-asked", ENDED)))
        return sorted(asking, key=lambda node: node.base in slurm_nodes.TAKEN)

    def ask(self, tools: SlurmTools, nodes: Sequence[SlurmNodeState]) -> None:
        job, asked = f"envcheck-{secrets.token_hex(6)}", self.members.asked
        peers = [(node.name, node.address or node.name) for node in nodes]
        script = single_file.build_script(plugins.probe_files())
        commands = [
            slurm.command(
                tools, node, asked.filled(node.name, peers), self._question, job, self._cookie
            )
            for node in nodes
        ]
        with scratch.directory() as work, ExitStack() as ending:
            if not tools.is_in_job:  # srun's jobs may wait in the queue, or end at their limit
                scancel = [str(tools.scancel), f"--name={job}"]
                ending.callback(processes.run, scancel, deadline=20.0, env=tools.environ)
            given = work / "collector.py"
            given.write_bytes(script)
            processes.run_many(
                commands,
                at_once=self._question.at_once,
                env=tools.environ,
                stdin=given,
                launch=self._question.immediate + slurm.LAUNCH,
                mark=slurm.mark(self._cookie).encode(),
                deadline=asked.deadline + relay.MARGIN,
                limit=relay.LARGEST + (1 << 16),
                ended=lambda number, result: self._ended(nodes[number], result),
                tick=self.members.tick,
            )

    def _ended(self, node: SlurmNodeState, result: Any) -> None:
        mark, deadline = slurm.mark(self._cookie).encode(), self.members.asked.deadline
        _, reached, answer = result.stdout.partition(mark + b"\n")
        found: bytes | tuple[Outcome, str]
        if not reached:
            found = slurm.not_started(node, result, self._question)
        elif result.outcome == "timeout":
            found = relay.late(deadline)
        else:
            words = "" if answer.strip() else slurm.srun_words(result.stderr)
            found = relay.read(answer, self._cookie, deadline, words, result.code)
            found = found if isinstance(found, bytes) else slurm.lost(result) or found
        if isinstance(found, bytes):
            self.members.keep(node.name, slurm_nodes.groups(node), found)
        else:
            self._put(node, *found)

    def _put(self, node: SlurmNodeState, outcome: Outcome, reason: str) -> None:
        self.members.put(node.name, slurm_nodes.groups(node), outcome, reason)
