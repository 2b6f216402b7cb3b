"""`envcheck fleet network`: the network between machines, tested pair by pair, then with all together."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ...exit_codes import ExitCode, UsageError
from .. import files, options
from ..options import flag, option
from ..parser import Parser
from ..values import seconds
from . import asking, machines, shown

if TYPE_CHECKING:
    from ...fleet.network.model import NetworkRun

DIRECTORY = "fleet"
DEADLINE = 1800.0  # seconds of each of the two passes
PATIENCE = 240.0  # seconds until all machines have started
FORKS = 512  # all machines at once

EPILOG = """\
examples:
  envcheck fleet network -i hosts.ini --target /opt/torch
  envcheck fleet network --slurm --nodes gpu[01-16] --target /opt/torch -- -p a100
  envcheck fleet network --from fleet/ -v      judge the last run again

--target needs PyTorch or Horovod: NCCL is used where there are GPUs, Gloo where there are none.
exit codes: 0 no problem but warnings, 1 a problem was found, 2 wrong usage or unreadable input,
4 no problem, but machines could not be tested"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    words = "directory for network.json (default: fleet)"
    option(parser, "directory", "DIR", words, nargs="?", default=DIRECTORY)
    option(parser, "--from", "DIR", "judge the network.json in this directory", dest="source")
    machines.add_arguments(parser)
    group = parser.add_argument_group("what is tested")
    words = "the environment with PyTorch or Horovod, at the same path on all machines"
    option(group, "--target", "PATH", words)
    words = "time limit for each of the two passes (default: 1800)"
    option(group, "--deadline", "SECONDS", words, type=seconds(30, 86400))
    flag(group, "--busy-ok", "also on machines whose GPUs are in use")
    options.add_format(parser, json="for programs", openmetrics="for Prometheus")
    options.add_detail(parser, "a line for each machine")
    options.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.network import result, running, text

    files.check_writable(arguments.output)
    if arguments.source is not None:
        if machines.wanted(arguments) is not None:
            raise UsageError("--from judges an earlier run: it goes without -i and --slurm")
        found = running.read(Path(arguments.source))
    else:
        found = _tested(arguments)
    judged = result.result(found)
    shown.write(arguments, judged, text.render)
    codes = {"fail": ExitCode.PROBLEMS, "could-not-run": ExitCode.COULD_NOT_LOOK}
    return codes.get(judged.outcome, ExitCode.HEALTHY)


def _tested(arguments: argparse.Namespace) -> NetworkRun:
    from ...fleet.engines.collecting import Members
    from ...fleet.folder import FleetFolder
    from ...fleet.network import running
    from ...install import signals

    named = machines.named(arguments, "; --from DIR judges an earlier run")
    words = asking.target_words(arguments)
    if not words:
        raise UsageError("which environment, with PyTorch or Horovod, tests it? --target PATH")
    deadline = arguments.deadline or DEADLINE
    wanted = {
        "busy_ok": arguments.busy_ok,
        "patience": min(PATIENCE, deadline),
        "seconds": deadline,
    }
    folder = FleetFolder(asking.directory(Path(arguments.directory)))
    with asking.AskingLine(arguments.quiet) as line, signals.ending_raises():

        def ask(members: Members, names: list[str] | None) -> None:
            machines.ask(members, named.at_once_on(names, FORKS), line.say)

        on_outcome = line.on_outcome
        return running.run(ask, named.engine, folder, words, wanted, deadline, on_outcome, line.say)
