"""What the commands that show a fleet share: a directory of Snapshots, judged, in the form asked for."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from ...exit_codes import ExitCode
from .. import files
from ..style import style_for

if TYPE_CHECKING:
    from ...fleet.folder import FleetFolder, Member
    from ...fleet.model import FleetResult, JudgedMachine

FORMATS = {"json": "for programs"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shown = parser.add_mutually_exclusive_group()
    files.add_format(shown, **FORMATS)
    shown.add_argument(
        "--commands",
        action="store_true",
        help="print what to type, and on which machines: read it, then run it",
    )
    files.add_detail(parser, "all names, all evidence, and a line for each machine")
    files.add_output(parser)


def add_profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--expect", metavar="FILE", help="also hold each machine against this profile"
    )


def check(arguments: argparse.Namespace) -> None:
    """Raises UsageError for what could not be written, before anybody waits for it."""
    files.check_writable(arguments.output)


def show(
    folder: FleetFolder,
    members: list[Member],
    arguments: argparse.Namespace,
    profile: str | None = None,
) -> ExitCode:
    """Judge these machines and write what was asked for."""
    from ...fleet.result import result
    from ...profiles import reading

    held_against = None if profile is None else reading.read(profile)
    machines = _judged(folder, members, held_against, quiet=arguments.quiet)
    found = result(machines)
    files.write(arguments.output, _render(found, arguments))
    return ExitCode.HEALTHY if arguments.exit_zero else exit_code(found, arguments.fail_on)


def exit_code(found: FleetResult, fail_on: str) -> ExitCode:
    """As of one machine; the worst wins, and silence is no health."""
    counts = found.counts
    warned = bool(found.odd_attributes or found.odd_rates) or any(
        group.level == "warn" for group in found.groups
    )
    if counts.problems or (fail_on == "warn" and warned):
        return ExitCode.PROBLEMS
    silent = counts.could_not_look or counts.unanswered
    return ExitCode.COULD_NOT_LOOK if silent else ExitCode.HEALTHY


def _judged(
    folder: FleetFolder, members: list[Member], profile: object, *, quiet: bool
) -> list[JudgedMachine]:
    from ...fleet.judging import judged
    from ...reports.progress import StatusLine, with_time

    machines: list[JudgedMachine] = []
    since = time.monotonic()

    def text(columns: int) -> str:
        told = f"{len(machines)} of {len(members)} machines judged"
        return with_time(told, since, columns)

    with StatusLine(sys.stderr) as line:
        if not quiet:
            line.show(text)
        for machine in judged(folder, members, profile):  # type: ignore[arg-type]
            machines.append(machine)
    return machines


def _render(found: FleetResult, arguments: argparse.Namespace) -> str:
    from ...fleet.reports import as_json, text

    if arguments.format == "json":
        return as_json.render(found, verbose=arguments.verbose)
    return text.render(found, **style_for(arguments.output)._asdict())
