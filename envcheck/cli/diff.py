"""`envcheck diff`: what changed between two Snapshots, or since one."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING

from ..exit_codes import ExitCode, UsageError
from . import files, kernels, options, sources
from .options import flag, option
from .parser import Parser

if TYPE_CHECKING:
    from ..facts.snapshot import Snapshot
    from ..reports.diff_model import DiffReport

EPILOG = """\
examples:
  envcheck diff before.json after.json
  envcheck diff before.json            since then, on this machine
  ssh HOST cat machine.json | envcheck diff golden.json -

exit codes: 0 nothing became worse (--fail-on change: nothing changed), 1 a
check or a rate did, 2 wrong usage or unreadable input, 4 a check that
could run before could not run now, and nothing else became worse"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    option(parser, "before", "A", "a Snapshot (- is standard input)")
    option(parser, "after", "B", "another one (default: this machine now)", nargs="?")
    options.add_target(parser)
    words = "level of this machine: quick, standard, deep (default: that of A)"
    option(parser, "--level", "LEVEL", words, choices=kernels.LOOKS)
    options.add_format(parser, json="for programs")
    flag(parser, "-v --verbose", "every fact that changed")
    options.add_output(parser)
    words = "exit with 1 if something became worse (default), on any change, or never"
    choices = ("worse", "change", "never")
    option(parser, "--fail-on", "WHAT", words, choices=choices, default="worse")
    parser.set_defaults(kernels=None, gpu=None, modes=None, busy_ok=False)


def run(arguments: argparse.Namespace) -> int:
    from ..checks.engine import diagnose
    from ..reports import diff, diff_model

    if arguments.before == arguments.after == "-":
        raise UsageError("- and -: standard input can be one of the two only")
    for name in ("target", "level"):
        if arguments.after is not None and getattr(arguments, name) is not None:
            why = "with B this machine is not checked"
            raise UsageError(f"--{name} and B cannot be used together: {why}")
    for name in ("before", "after"):
        files.check_places(arguments, name)
    before = sources.read_snapshot(arguments.before).snapshot
    if arguments.after is None:
        after = _this_machine(arguments, before)
    else:
        after = sources.read_snapshot(arguments.after).snapshot
    report = diff_model.compare(before, after, diagnose(before), diagnose(after))
    names = (_named(arguments.before), _named(arguments.after) or "now")
    if names[0] == names[1]:
        names = (arguments.before, arguments.after)
    render = functools.partial(diff.render, names=names, verbose=arguments.verbose)
    files.show(arguments, report, render)
    return _exit_code(report, arguments.fail_on)


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


def _named(path: str | None) -> str:
    return {"-": "stdin", None: ""}.get(path, "") or (path or "").rpartition("/")[2]


def _exit_code(report: DiffReport, fail_on: str) -> ExitCode:
    if fail_on == "never" or not (report.worse or (fail_on == "change" and report.changed)):
        return ExitCode.HEALTHY
    turned = [one for one in report.turned if one.worse]
    unseen = bool(turned) and all(one.after == "could-not-run" for one in turned)
    if unseen and not any(one.worse for one in report.rates) and fail_on != "change":
        return ExitCode.COULD_NOT_LOOK
    return ExitCode.PROBLEMS
