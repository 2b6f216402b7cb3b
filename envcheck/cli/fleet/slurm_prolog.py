"""`envcheck fleet slurm-prolog`: a script for Slurm that drains a node whose driver or GPUs fail."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...exit_codes import ExitCode, UsageError
from .. import files, options
from ..options import option
from ..parser import Parser
from ..values import seconds

EPILOG = """\
examples:
  envcheck fleet slurm-prolog --output /etc/slurm/prolog.d/50-envcheck
  envcheck fleet slurm-prolog --envcheck /shared/envcheck/bin/envcheck --limit 2
then, in slurm.conf:
  Prolog=/etc/slurm/prolog.d/50-envcheck      (or Epilog=, or HealthCheckProgram=)
and, after a drained node is repaired:
  scontrol update NodeName=gpu07 State=RESUME"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    words = "where envcheck is on the nodes (default: where it is here)"
    option(parser, "--envcheck", "PATH", words)
    add_limit(parser)
    add_fail_on(parser)
    words = "time limit of the doctor (default: 25)"
    option(parser, "--deadline", "SECONDS", words, type=seconds(1, 600), default=25.0)
    options.add_output(parser)


def add_limit(parser: Parser) -> None:
    words = "share of the nodes with GPUs that it may drain within an hour (default: 5, at least one node)"
    option(parser, "--limit", "PERCENT", words, type=_percent, default=5.0)


def add_fail_on(parser: Parser) -> None:
    words = "also drain a degraded node (default: fail, which drains none for that)"
    option(parser, "--fail-on", "WHAT", words, choices=("degraded", "fail"), default="fail")


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.engines import slurm_prolog

    files.check_writable(arguments.output)
    text = slurm_prolog.script(
        _envcheck(arguments.envcheck),
        limit=arguments.limit,
        deadline=arguments.deadline,
        fail_on=arguments.fail_on,
    )
    files.write(arguments.output, text)
    if arguments.output not in (None, "-") and Path(arguments.output).is_file():
        Path(arguments.output).chmod(0o755)
    return ExitCode.HEALTHY


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage above 0 and up to 100")
    return value


def _envcheck(path: str | None) -> list[str]:
    if path is None:
        beside = Path(sys.executable).parent / "envcheck"
        return [str(beside)] if beside.is_file() else [sys.executable, "-m", "envcheck"]
    if not path.startswith("/") or not path.isprintable():
        raise UsageError(
            f"--envcheck {path!a}: Slurm starts the script in any directory, so the path must be absolute"
        )
    return [path]
