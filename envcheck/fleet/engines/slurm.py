"""Slurm's commands: which nodes are meant, the srun that asks one of them, and what srun says of it."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from ... import safe_text
from ...exit_codes import CouldNotLook, UsageError
from ...install import processes
from ..folder import Outcome
from . import Asked, relay, slurm_nodes
from .slurm_nodes import SlurmNodeState

AT_ONCE = 32
IMMEDIATE = 15.0  # seconds that Slurm has to start a job on a node
LAUNCH = 30.0  # seconds from a job's start to its first process

# Of the user's environment, what would change how srun passes on what comes.
_FORMS = re.compile(r"(?:SLURM|SRUN)_(?:LABELIO|STD\w{1,20}MODE|INPUT|OUTPUT|ERROR|MULTI_PROG|PTY)")

# No variable of the user's goes to the nodes but these (by default srun sends all of them, secrets, too), nor
# do the limits of the shell here; each can be set otherwise after "--".
_DEFAULTS = (
    "--export=PATH,HOME,USER,LOGNAME,LANG",
    "--propagate=NONE",
    "--chdir=/",
    "--mpi=none",
)
# What says how many GPUs a job gets.
_GPU_OPTIONS = ("--gres", "--gpus", "-G", "--exclusive", "--tres-per")
_OURS = ("-w", "--nodelist", "-N", "--nodes", "-n", "--ntasks", "-l", "--label", "--pty")


class SlurmQuestion(NamedTuple):
    """What is wanted of Slurm. nodes: a host list, "" for all of the partition or cluster. options: of srun.
    immediate: seconds that Slurm has to start a job; a node that is still busy then is not asked.
    """

    nodes: str = ""
    options: Sequence[str] = ()
    immediate: float = IMMEDIATE
    at_once: int = AT_ONCE
    engine: str = "slurm"

    def at_once_on(self, names: Sequence[str] | None, most: int) -> SlurmQuestion:
        """As of an Inventory."""
        return self._replace(nodes=self.nodes if names is None else ",".join(names), at_once=most)


class SlurmTools(NamedTuple):
    """Slurm's commands, and the environment that they run with."""

    srun: Path
    sinfo: Path
    scontrol: Path
    scancel: Path
    environ: Mapping[str, str]

    @property
    def is_in_job(self) -> bool:
        """Whether envcheck runs in a job of the user's: what is started is a step of that."""
        return bool(self.environ.get("SLURM_JOB_ID"))

    def version(self) -> str:
        """slurm-wlm 22.05.8"""
        return safe_text.one_line(self.says(self.srun, "--version"))[:100]

    def says(self, program: Path, *arguments: str, deadline: float = 60.0) -> str:
        """What it writes to standard output. Raises CouldNotLook."""
        result = processes.run([program, *arguments], deadline=deadline, env=self.environ)
        if not result.ok:
            words = safe_text.one_line(result.tail(1))[:300] or result.describe()
            raise CouldNotLook(f"{program.name} {arguments[0]}: {words}")
        return str(result.stdout.decode("utf-8", "replace"))

    def nodes(self, *limits: str, deadline: float = 60.0) -> dict[str, SlurmNodeState]:
        """The nodes by their names. Raises CouldNotLook."""
        words = ("--Node", "--noheader", f"--format={slurm_nodes.FORMAT}", *limits)
        found = slurm_nodes.nodes(self.says(self.sinfo, *words, deadline=deadline))
        return {node.name: node for node in found}


def find(environ: Mapping[str, str]) -> SlurmTools:
    """Raises CouldNotLook where Slurm's commands are not there."""
    clean = {name: value for name, value in environ.items() if not _FORMS.fullmatch(name)}
    found = {}
    for name in ("srun", "sinfo", "scontrol", "scancel"):
        place = shutil.which(name, path=environ.get("PATH", ""))
        if place is None:
            raise CouldNotLook(
                f"there is no {name} in PATH: a fleet is asked by Slurm where its jobs are submitted",
                hint="a login node has it, or: module load slurm",
            )
        found[name] = Path(place).absolute()
    return SlurmTools(**found, environ=clean)


def chosen(tools: SlurmTools, question: SlurmQuestion) -> list[SlurmNodeState]:
    """The nodes that are meant, as Slurm tells them."""
    partition = option(question.options, "--partition", "-p")
    wanted = question.nodes or tools.environ.get("SLURM_JOB_NODELIST", "")
    known = tools.nodes(*(["--partition", partition] if partition else []))
    if not wanted:
        if not known:
            raise UsageError("Slurm has no nodes" + (f" in {partition}" if partition else ""))
        return [*known.values()]
    try:
        names = dict.fromkeys(tools.says(tools.scontrol, "show", "hostnames", wanted).split())
    except CouldNotLook as error:
        raise UsageError(f"--nodes {safe_text.one_line(wanted)}: {error}") from None
    missing = [name for name in names if name not in known]
    if missing:
        where = f" in the partition {partition}" if partition else ""
        raise UsageError(
            f"Slurm knows no node {safe_text.one_line(missing[0])}{where}",
            hint="sinfo --Node lists all nodes",
        )
    return [known[name] for name in names]


def command(
    tools: SlurmTools,
    node: SlurmNodeState,
    asked: Asked,
    question: SlurmQuestion,
    job: str,
    cookie: str,
) -> list[str]:
    """srun's command line for one node. Of options given twice, srun takes the last."""
    words = [str(tools.srun), *_DEFAULTS, f"--immediate={ceil(question.immediate)}"]
    if not tools.is_in_job:
        words.append(f"--time={ceil((LAUNCH + asked.deadline + relay.MARGIN) / 60)}")
        if node.partitions and not option(question.options, "--reservation"):
            words.append(f"--partition={node.partitions[0]}")
        if node.gpus and not any(word.startswith(_GPU_OPTIONS) for word in question.options):
            words.append(f"--gres=gpu:{node.gpus}")
    words += question.options
    words += ["--quiet", "--nodes=1", "--ntasks=1", f"--nodelist={node.name}", f"--job-name={job}"]
    there = relay.shell("python3", asked, cookie)
    return [*words, "sh", "-c", f"echo {mark(cookie)}; {there}"]


def option(words: Sequence[str], *names: str) -> str:
    """The value of an option of srun's, as it may be written; "" where it is not there."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(*names, dest="value", nargs="?", default="")
    return parser.parse_known_args(words)[0].value or ""


def mark(cookie: str) -> str:
    """What a node's shell writes first."""
    return f"@reached-{cookie}"


def not_started(node: SlurmNodeState, result: Any, question: SlurmQuestion) -> tuple[Outcome, str]:
    """What became of a node whose job has not come to its first process."""
    words = srun_words(result.stderr)
    refused = words.partition("Unable to allocate resources: ")[2]
    if "are busy" in refused or "Immediate execution" in words:
        state = safe_text.one_line(node.state)
        return "not-asked", f"busy ({state}): Slurm did not give it within {question.immediate:g} s"
    if refused or "Unable to create step" in words:
        return "not-asked", f"Slurm gives no job there: {refused or words}"
    if result.outcome == "timeout":
        return "unreachable", "Slurm started nothing there in time" + (
            f": {words}" if words else ""
        )
    if "ommunication" in words or "launch failed" in words or "NODE FAILURE" in words:
        return "unreachable", words
    return "failed", f"srun {result.describe()}" + (f": {words}" if words else "")


def lost(result: Any) -> tuple[Outcome, str] | None:
    """Of a node that was reached and gave no answer: whether that is because it was lost."""
    words = srun_words(result.stderr)
    if any(known in words for known in ("NODE FAILURE", "Node failure", "ommunication")):
        return "unreachable", words
    return None


def srun_words(stderr: bytes) -> str:
    """The first of srun's errors, which says most; Slurm's daemons on the node say theirs after it."""
    lines = stderr.decode("utf-8", "replace").splitlines()
    errors = [line.partition("error: ")[2] for line in lines if line.startswith("srun: error: ")]
    first = next(iter(errors), "") or next((line for line in lines if line.strip()), "")
    # the same on all nodes, so that they are reported together
    first = re.sub(r" (?:for )?(?:StepId=[\d.]{1,20}|JobId=\d{1,12})", "", first)
    return safe_text.one_line(re.sub(r" on (?:node )?[\w.-]{1,200}(?=:|$)", "", first))[:300]


def refuse_ours(options: Sequence[str]) -> None:
    for word in options:
        if not word.startswith("-") or word == "-":
            continue
        if word.partition("=")[0] in _OURS or (word[:2] in _OURS and not word.startswith("--")):
            raise UsageError(
                f"{safe_text.one_line(word)} cannot be passed to srun: each node gets its own job",
                hint="--nodes selects the nodes",
            )
