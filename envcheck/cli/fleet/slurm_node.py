"""`envcheck fleet slurm-node`: what the script of `slurm-prolog` does with the doctor's report."""

from __future__ import annotations

import argparse
import os
from datetime import datetime, timezone
from pathlib import Path

from ...exit_codes import ExitCode, UsageError
from .. import files
from ..parser import Parser
from . import slurm_prolog

EPILOG = """\
The script that slurm-prolog prints runs this on each node.
exit codes: 0 the node stays in service, 1 it is drained, 4 Slurm gave no answer"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("report", metavar="REPORT", help="a JSON report of the doctor")
    parser.add_argument("--node", metavar="NAME", required=True, help="the node's name in Slurm")
    slurm_prolog.add_limit(parser)
    slurm_prolog.add_fail_on(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.engines import slurm_drain

    try:
        report = Path(arguments.report).read_bytes()
    except OSError as error:
        raise UsageError(f"{arguments.report}: {error.strerror}") from None
    decision = slurm_drain.drain(
        slurm_drain.SlurmCommands(os.environ),
        arguments.node,
        slurm_drain.problem(report, arguments.fail_on),
        percent=arguments.limit,
        now=lambda: datetime.now(timezone.utc),
    )
    files.write(None, f"{decision.sentence}\n")
    return ExitCode.PROBLEMS if decision.done else ExitCode.HEALTHY
