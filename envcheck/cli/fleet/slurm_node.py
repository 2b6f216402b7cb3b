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
The script that slurm-prolog prints runs this on the node that it concerns.
exit codes: drain 0 the node stays in service, 1 it is drained;
resume 0 it is back in service, 1 it is not; both 4 Slurm gave no answer"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("action", metavar="drain|resume", choices=("drain", "resume"))
    parser.add_argument("report", metavar="REPORT", help="of the doctor, as JSON")
    parser.add_argument("--node", metavar="NAME", required=True, help="its name in Slurm")
    parser.add_argument(
        "--before",
        metavar="FILE",
        help="with resume: what sinfo said of it before the doctor looked",
    )
    slurm_prolog.add_limit(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.engines import slurm_drain

    found = slurm_drain.results(_read(arguments.report))
    cluster = slurm_drain.SlurmCommands(os.environ)
    if arguments.action == "drain":
        decision = slurm_drain.drain(
            cluster,
            arguments.node,
            found,
            percent=arguments.limit,
            now=lambda: datetime.now(timezone.utc),
        )
        code = ExitCode.PROBLEMS if decision.done else ExitCode.HEALTHY
    else:
        if arguments.before is None:
            raise UsageError("resume needs --before")
        before = slurm_drain.rows(_read(arguments.before).decode("utf-8", "replace"))
        decision = slurm_drain.resume(cluster, arguments.node, found, before.get(arguments.node))
        code = ExitCode.HEALTHY if decision.done else ExitCode.PROBLEMS
    files.write(None, f"{decision.sentence}\n")
    return code


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
