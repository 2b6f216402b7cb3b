"""`envcheck fleet slurm-prolog`: a script for Slurm that drains a node whose driver or GPUs fail."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...exit_codes import ExitCode, UsageError
from .. import doctor, files
from ..parser import Parser, seconds

LOG = "/var/log/envcheck-prolog.log"
AREAS = ("driver", "gpu", "pci")

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
    parser.add_argument(
        "--envcheck",
        metavar="PATH",
        help="where envcheck is on the nodes (default: where it is here)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="CHECK",
        help="drain only for these, of the areas driver, gpu and pci: gpu, DRV-002 (default: all three)",
    )
    add_limit(parser)
    parser.add_argument(
        "--deadline",
        type=seconds(1, 600),
        default=25.0,
        metavar="SECONDS",
        help="time limit of the doctor (default: 25)",
    )
    parser.add_argument(
        "--log",
        metavar="FILE",
        default=LOG,
        help="log file on the node, a line per run (default: %(default)s)",
    )
    files.add_output(parser)


def add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        type=_percent,
        default=5.0,
        metavar="PERCENT",
        help="share of the nodes with GPUs that it may drain within an hour (default: 5, at least one node)",
    )


def run(arguments: argparse.Namespace) -> int:
    from ...fleet.engines import slurm_prolog

    files.check_writable(arguments.output)
    text = slurm_prolog.script(
        _envcheck(arguments.envcheck),
        only=_only(arguments.only),
        limit=arguments.limit,
        deadline=arguments.deadline,
        log=_absolute("--log", arguments.log),
    )
    files.write(arguments.output, text)
    if arguments.output not in (None, "-") and Path(arguments.output).is_file():
        Path(arguments.output).chmod(0o755)
    return ExitCode.HEALTHY


def _only(words: list[str]) -> list[str]:
    """The checks that the doctor runs. Raises UsageError for one that no node is drained for."""
    from ...fleet.engines import slurm_drain

    for word in doctor._selection(words):
        if word not in AREAS and not slurm_drain.may_drain(word):
            raise UsageError(
                f"--only {word}: a node is drained only for its driver, its GPUs and its PCI bus",
                hint=f"--only takes {', '.join(AREAS)}, and codes of these areas",
            )
    return words or list(AREAS)


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage above 0 and up to 100")
    return value


def _envcheck(path: str | None) -> list[str]:
    if path is not None:
        return [_absolute("--envcheck", path)]
    beside = Path(sys.executable).parent / "envcheck"
    return [str(beside)] if beside.is_file() else [sys.executable, "-m", "envcheck"]


def _absolute(option: str, path: str) -> str:
    if not path.startswith("/") or not path.isprintable():
        raise UsageError(
            f"{option} {path!a}: Slurm starts the script in any directory, so the path must be absolute"
        )
    return path
