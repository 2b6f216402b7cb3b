"""`envcheck fleet slurm-prolog`: a script for Slurm that drains a node by the doctor's exit code."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...exit_codes import ExitCode, UsageError
from .. import doctor, files, kernels
from ..parser import Parser, seconds

LOG = "/var/log/envcheck-prolog.log"

EPILOG = """\
examples:
  envcheck fleet slurm-prolog --output /etc/slurm/prolog.d/50-envcheck
  envcheck fleet slurm-prolog --envcheck /shared/envcheck/bin/envcheck --only driver gpu pci
then, in slurm.conf:
  Prolog=/etc/slurm/prolog.d/50-envcheck      (or Epilog=, or HealthCheckProgram=)"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "--envcheck",
        metavar="PATH",
        help="where envcheck is on the nodes (default: where it is here)",
    )
    parser.add_argument(
        "--level",
        choices=kernels.LOOKS,
        default="quick",
        metavar="LEVEL",
        help="how deep the doctor looks: quick (default), standard or deep",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="CHECK",
        help="run only these: driver (an area), DRV-002; which is faster",
    )
    parser.add_argument(
        "--deadline",
        type=seconds(1, 3600),
        default=30.0,
        metavar="SECONDS",
        help="how long the doctor may take (default: 30)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="drain also where envcheck itself could not look",
    )
    parser.add_argument(
        "--log",
        metavar="FILE",
        default=LOG,
        help="on the node, a line each time (default: %(default)s)",
    )
    files.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.engines import slurm_prolog

    doctor._selection(arguments.only)  # what the doctor would refuse on every node
    files.check_writable(arguments.output)
    text = slurm_prolog.script(
        _envcheck(arguments.envcheck),
        level=arguments.level,
        only=arguments.only,
        deadline=arguments.deadline,
        strict=arguments.strict,
        log=_absolute("--log", arguments.log),
    )
    files.write(arguments.output, text)
    if arguments.output not in (None, "-") and Path(arguments.output).is_file():
        Path(arguments.output).chmod(0o755)
    return ExitCode.HEALTHY


def _envcheck(path: str | None) -> list[str]:
    if path is not None:
        return [_absolute("--envcheck", path)]
    beside = Path(sys.executable).parent / "envcheck"
    return [str(beside)] if beside.is_file() else [sys.executable, "-m", "envcheck"]


def _absolute(option: str, path: str) -> str:
    if not path.startswith("/") or not path.isprintable():
        raise UsageError(
            f"{option} {path!a}: Slurm starts it anywhere, so the path has to be absolute"
        )
    return path
