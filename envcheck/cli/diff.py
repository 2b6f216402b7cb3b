"""`envcheck diff`: what changed between two Snapshots, or since one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .. import json_text
from ..exit_codes import ExitCode, UsageError
from . import files, kernels, sources
from .parser import Parser
from .style import style_for

if TYPE_CHECKING:
    from ..facts.snapshot import Snapshot
    from ..reports.diff_model import DiffReport

EPILOG = """\
examples:
  envcheck diff before.json after.json
  envcheck diff before.json            since then, on this machine
  ssh HOST cat machine.json | envcheck diff golden.json -
  envcheck diff before.json after.json --format json"""

MORE = """\
exit codes: 0 nothing became worse (--fail-on change: nothing changed), 1 a
check or a rate did, 2 wrong usage or unreadable input, 4 a check that
could run before could not run now, and nothing else became worse"""


def add_arguments(parser: Parser) -> None:
    parser.epilog, parser.more = EPILOG, MORE
    parser.add_argument("before", metavar="A", help="a Snapshot (- is standard input)")
    parser.add_argument(
        "after", metavar="B", nargs="?", help="another one (default: this machine now)"
    )
    sources.add_target(parser)
    parser.add_argument(
        "--level",
        choices=kernels.LOOKS,
        metavar="LEVEL",
        help="level of this machine: quick, standard, deep (default: that of A)",
    )
    output = parser.add_mutually_exclusive_group()
    files.add_format(output, json="for programs")
    parser.add_argument("-v", "--verbose", action="store_true", help="every fact that changed")
    files.add_output(parser)
    parser.add_argument(
        "--fail-on",
        choices=("worse", "change", "never"),
        default="worse",
        metavar="WHAT",
        help="exit with 1 if something became worse (default), on any change, or never",
    )
    parser.set_defaults(kernels=None, gpu=None, modes=None, busy_ok=False)


def run(arguments: argparse.Namespace) -> int:
    from ..checks.engine import diagnose
    from ..reports import diff_model

    if arguments.before == arguments.after == "-":
        raise UsageError("- and -: standard input can be one of the two only")
    for option in ("target", "level"):
        if arguments.after is not None and getattr(arguments, option) is not None:
            raise UsageError(
                f"--{option} and B cannot be used together: with B this machine is not checked"
            )
    files.check_writable(arguments.output)
    for given in (arguments.before, arguments.after):
        read = None if given == "-" else given
        files.check_distinct({"the Snapshot": read, "--output": arguments.output})
    before = sources.read_snapshot(arguments.before).snapshot
    after = _this_machine(arguments, before) if arguments.after is None else _read(arguments.after)
    report = diff_model.compare(before, after, diagnose(before), diagnose(after))
    files.write(arguments.output, _render(arguments, report))
    return _exit_code(report, arguments.fail_on)


def _read(path: str) -> Snapshot:
    return sources.read_snapshot(path).snapshot


def _this_machine(arguments: argparse.Namespace, before: Snapshot) -> Snapshot:
    if arguments.level is None:
        arguments.level = _level_of(before)
    return sources.live(arguments.target, kernels=kernels.wanted(arguments)).snapshot


def _level_of(snapshot: Snapshot) -> str:
    """How deep that machine was looked at."""
    documents = [one for one in (snapshot.machine, snapshot.target) if one is not None]
    if any(one.acceleration is not None for one in documents):
        return "deep"
    return "standard" if any(one.micro_kernels is not None for one in documents) else "quick"


def _render(arguments: argparse.Namespace, report: DiffReport) -> str:
    if arguments.format == "json":
        return json_text.render(report)
    from ..reports import diff

    names = (_named(arguments.before), _named(arguments.after) or "now")
    if names[0] == names[1]:
        names = (arguments.before, arguments.after)
    style = style_for(arguments.output)
    return diff.render(report, names=names, **style._asdict(), verbose=arguments.verbose)


def _named(path: str | None) -> str:
    return {"-": "stdin", None: ""}.get(path, "") or (path or "").rpartition("/")[2]


def _exit_code(report: DiffReport, fail_on: str) -> ExitCode:
    if fail_on == "never" or not (report.worse or (fail_on == "change" and report.changed)):
        return ExitCode.HEALTHY
    turned = [one for one in report.turned if one.worse]
    unseen = bool(turned) and all(one.after == "could-not-run" for one in turned)
    slower = any(one.worse for one in report.rates)
    return (
        ExitCode.COULD_NOT_LOOK
        if unseen and not slower and fail_on != "change"
        else ExitCode.PROBLEMS
    )
