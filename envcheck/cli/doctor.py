"""`envcheck doctor`: from facts to a diagnosis."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ..exit_codes import ExitCode, UsageError
from . import files, sources
from .style import style_of

if TYPE_CHECKING:
    from ..checks.model import Diagnosis
    from ..collection import Collected

FORMATS = ("terminal", "json", "junit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    sources.add_target(where)
    where.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help='diagnose this Snapshot instead of this machine ("-": standard input)',
    )
    parser.add_argument("--format", choices=FORMATS, default="terminal")
    files.add_output(parser)
    parser.add_argument(
        "--save", metavar="FILE", help="also write the Snapshot that the diagnosis rests on"
    )
    sources.add_deadline(parser)
    for name, what in (("--only", "run nothing but"), ("--skip", "leave out")):
        parser.add_argument(
            name,
            nargs="+",
            action="extend",
            default=[],
            metavar="CODE|AREA",
            help=f"{what} these checks (DRV-002) or areas (driver)",
        )
    parser.add_argument(
        "--fail-on",
        choices=("warn", "fail"),
        default="fail",
        help="what makes the exit code 1 (default: fail)",
    )
    parser.add_argument(
        "--exit-zero",
        action="store_true",
        help="exit with 0 whatever is found: the report is the result",
    )


def run(arguments: argparse.Namespace) -> int:
    from ..checks.engine import diagnose

    only, skip = _selection(arguments.only), _selection(arguments.skip)
    files.check_writable(arguments.output)
    files.check_writable(arguments.save)
    if arguments.source is not None:
        collected = sources.read_snapshot(arguments.source)
    else:
        collected = sources.live(arguments.target, deadline=arguments.deadline)
    if arguments.save is not None:
        from .. import snapshot as snapshots

        files.write(arguments.save, snapshots.dump(collected.snapshot))
    diagnosis = diagnose(collected.snapshot, only, skip)
    files.write(arguments.output, _render(arguments, collected, diagnosis))
    return ExitCode.HEALTHY if arguments.exit_zero else _exit_code(diagnosis, arguments.fail_on)


def _render(arguments: argparse.Namespace, collected: Collected, diagnosis: Diagnosis) -> str:
    from ..reports.model import build

    report = build(collected.snapshot, diagnosis)
    if arguments.format == "json":
        from ..reports import json_report

        return json_report.render(report)
    if arguments.format == "junit":
        from ..reports import junit

        return junit.render(report)
    from ..reports import terminal

    style = style_of(sys.stdout)
    to_file = arguments.output not in (None, "-")
    return terminal.render(
        report,
        collected.snapshot,
        width=80 if to_file else style.width,
        colour=style.colour and not to_file,
        utf8=to_file or style.utf8,
        restore=collected.restore,
    )


def _exit_code(diagnosis: Diagnosis, fail_on: str) -> ExitCode:
    outcomes = {result.outcome for result in diagnosis.results}
    if "fail" in outcomes or (fail_on == "warn" and "warn" in outcomes):
        return ExitCode.PROBLEMS
    return ExitCode.COULD_NOT_LOOK if "could-not-run" in outcomes else ExitCode.HEALTHY


def _selection(words: list[str]) -> list[str]:
    """Codes and areas as the registry writes them; raises UsageError for one that does not exist."""
    from ..checks.registry import AREAS, all_checks

    codes = {check.code for check in all_checks()}
    chosen = []
    for word in (part for words_ in words for part in words_.split(",") if part):
        if word.upper() in codes:
            chosen.append(word.upper())
        elif word.lower() in AREAS:
            chosen.append(word.lower())
        else:
            raise UsageError(
                f"{word}: neither a check's code nor an area ({', '.join(AREAS)})",
                hint="envcheck explain lists all codes",
            )
    return chosen
