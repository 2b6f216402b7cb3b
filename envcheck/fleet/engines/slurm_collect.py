"""Asks a cluster's nodes through Slurm: one srun a node, which costs that node alone whatever it does.

One srun for all nodes would wait until all of them are free, and its ``--output=%N`` is opened on the nodes,
which needs a file system that they share. So each node has a job of its own, so many at a time; the answer
comes back through srun's own connection. A job ends with its srun, at its time limit, and by scancel.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ... import plugins, scratch, single_file
from ...exit_codes import CouldNotLook
from ...install import processes
from ..folder import FleetFolder, Member, Outcome
from . import Asked, Told, interrupts, outcomes, relay, slurm, slurm_nodes
from .slurm import SlurmQuestion, SlurmTools
from .slurm_nodes import SlurmNodeState

_ENDED = "the run was ended before its answer"


def collect(
    folder: FleetFolder,
    question: SlurmQuestion,
    asked: Asked,
    told: Told,
    say: Callable[[str], None],
    environ: Mapping[str, str],
) -> list[Member]:
    """Ask every node that Slurm gives; the members of this run, in Slurm's order.

    told: called with each as soon as it is known what became of it, and with ``not-asked`` when it is known
    that it is to be asked. say: called with a sentence for people. However this ends, fleet.json tells what
    came until then, and no job is left. Raises UsageError, CouldNotLook.
    """
    slurm.refuse_ours(question.options)
    tools = slurm.find(environ)
    nodes = slurm.chosen(tools, question)
    run = _SlurmRun(folder, question, asked, told, slurm.switches(tools))
    asking = run.sort_out(nodes)
    say(f"asking {len(asking)} of {len(nodes)} nodes by {tools.version()}")
    try:
        run.ask(tools, asking)
    finally:
        run.write_roster()
    return list(run.members.values())


class _SlurmRun:
    """What is known while Slurm asks."""

    def __init__(
        self,
        folder: FleetFolder,
        question: SlurmQuestion,
        asked: Asked,
        told: Told,
        at: Mapping[str, Sequence[str]],
    ) -> None:
        self.members: dict[str, Member] = {}
        self._folder, self._question, self._asked = folder, question, asked
        self._told, self._at = told, at
        self._cookie = secrets.token_hex(16)

    def sort_out(self, nodes: Sequence[SlurmNodeState]) -> list[SlurmNodeState]:
        """Those that can be asked; those that may have to be waited for last. Tells of the others."""
        asking = []
        for node in nodes:
            found = slurm_nodes.closed(node)
            if found is None:
                asking.append(node)
            outcome, reason = found or ("not-asked", _ENDED)
            self._set(node, outcome, reason)
        return sorted(asking, key=lambda node: node.is_taken)

    def ask(self, tools: SlurmTools, nodes: Sequence[SlurmNodeState]) -> None:
        job = f"envcheck-{secrets.token_hex(6)}"
        script = single_file.build_script(plugins.probe_files())
        with scratch.directory() as work, _no_job_left(tools, job):
            given = work / "collector.py"
            given.write_bytes(relay.before(script, self._cookie, self._asked.deadline, slurm.LIMIT))
            processes.run_many(
                [self._command(tools, node, job) for node in nodes],
                at_once=self._question.at_once,
                env=tools.environ,
                stdin=given,
                launch=self._question.immediate + slurm.LAUNCH,
                mark=slurm.mark(self._cookie).encode(),
                deadline=self._asked.deadline + relay.MARGIN,
                limit=relay.LARGEST + (1 << 16),
                ended=lambda number, result: self._ended(nodes[number], result),
            )

    def _command(self, tools: SlurmTools, node: SlurmNodeState, job: str) -> list[str]:
        return slurm.command(tools, node, self._asked, self._question, job, self._cookie)

    def _ended(self, node: SlurmNodeState, result: Any) -> None:
        if slurm.mark(self._cookie).encode() not in result.stdout[: slurm.LIMIT].splitlines():
            self._set(node, *slurm.not_started(node, result, self._question))
            return
        relayed = relay.read(result.stdout, self._cookie, slurm.LIMIT)
        found = outcomes.of_relayed(relayed, self._asked.deadline)
        if result.outcome == "timeout":
            found = "timed-out", f"no answer within {self._asked.deadline:g} s"
        elif result.outcome == "flooded" or len(result.stdout) >= relay.LARGEST:
            found = outcomes.of_relayed(relay.Relayed("flooded"), self._asked.deadline)
        elif relayed.outcome == "damaged":
            found = slurm.lost(result) or found
        elif relayed.outcome == "garbled":
            found = slurm.lost(result) or outcomes.of_garbage(
                self._own_words(result), None, len(result.stdout)
            )
        if found is not None:
            self._set(node, *found)
            return
        try:
            with interrupts.deferred():
                self._keep(self._folder.keep(node.name, relayed.output, self._groups(node)))
        except OSError as error:
            raise CouldNotLook(f"{self._folder.path}: {error.strerror}") from None

    def _own_words(self, result: Any) -> str:
        """What the node said, without the mark that it was reached by."""
        said = result.stdout[-4000:].decode("utf-8", "replace")
        return str(said).rpartition(slurm.mark(self._cookie))[2]

    def _groups(self, node: SlurmNodeState) -> list[tuple[str, str]]:
        return slurm_nodes.groups(node, self._at)

    def _set(self, node: SlurmNodeState, outcome: Outcome, reason: str) -> None:
        groups = self._groups(node)
        self._keep(Member(name=node.name, outcome=outcome, reason=reason, groups=groups))

    def _keep(self, member: Member) -> None:
        self.members[member.name] = member
        self._told(member)

    def write_roster(self) -> None:
        """fleet.json: these nodes, and the machines of earlier runs that were not meant this time."""
        earlier = [one for one in self._folder.members() if one.name not in self.members]
        try:
            self._folder.write_roster("slurm", [*earlier, *self.members.values()])
        except OSError as error:
            raise CouldNotLook(f"{self._folder.path}: {error.strerror}") from None


@contextmanager
def _no_job_left(tools: SlurmTools, job: str) -> Iterator[None]:
    """No job of this name is left, however it ends: srun's may wait in the queue, or end at their limit."""
    try:
        yield
    finally:
        if not tools.is_in_job:
            processes.run([tools.scancel, f"--name={job}"], deadline=20.0, env=tools.environ)
