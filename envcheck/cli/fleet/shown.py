"""What the commands that show a fleet share: a directory of Snapshots, judged, in the form asked for."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ... import json_text
from ...exit_codes import ExitCode, UsageError
from ...findings import shell
from .. import files, options
from ..options import option
from ..style import style_for

if TYPE_CHECKING:
    from ...facts.profile import Profile
    from ...fleet.folder import FleetFolder, Member
    from ...fleet.model import FleetResult, JudgedMachine
    from ...fleet.network.model import NetworkResult

HTML = "html"
FORMATS = {
    "json": "for programs",
    "openmetrics": "for Prometheus",
    HTML: "a page, and one for each machine, in the directory that --output names, or in DIR",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_format(parser, **FORMATS)
    options.add_detail(parser, "all names, and a line for each machine")
    options.add_output(parser)
    option(parser, "--expect", "FILE", "also compare each machine with this profile")


def check(arguments: argparse.Namespace) -> None:
    """Raises UsageError for what could not be written, before anybody waits for it."""
    if arguments.format != HTML:
        files.check_writable(arguments.output)
    elif arguments.output is not None:
        _pages_folder(arguments.output)


def members(folder: FleetFolder) -> list[Member]:
    """Every machine of a directory. Raises UsageError where it is none, or nothing is in it."""
    from ...fleet.folder import NETWORK

    path = folder.path
    if not path.exists():
        raise UsageError(f"{path}: there is no such directory")
    if not path.is_dir():
        raise UsageError(
            f"{path}: this is a file; a fleet is a directory with a NAME.json for each machine",
            hint=f"envcheck doctor --from {shell.word(str(path))}",
        )
    found = folder.members()
    if not found and not (path / NETWORK).exists():
        raise UsageError(
            f"{path}: there is no Snapshot in it (NAME.json)",
            hint="envcheck collect --output NAME.json writes one on a machine",
        )
    return found


def show(path: Path, arguments: argparse.Namespace, since: Sequence[str] = ()) -> ExitCode:
    """Judge the machines of a directory and write what was asked for. since: directories of earlier
    Snapshots."""
    from ...attributes import profile_reading as reading
    from ...fleet.folder import FleetFolder
    from ...fleet.reports import page, text
    from ...fleet.result import result

    folder = FleetFolder(path)
    found = members(folder)
    profile = None if arguments.expect is None else reading.read(arguments.expect)
    pages = None
    if arguments.format == HTML:
        pages = path if arguments.output is None else _pages_folder(arguments.output)
        page.check(pages, [member.name for member in found])
    earlier = [FleetFolder(Path(one)) for one in since]
    before = [_judged(one, members(one), profile, arguments)[0] for one in earlier]
    machines, network = _judged(folder, found, profile, arguments, pages)
    whole = result(machines, before, network)
    if pages is None:
        kept = whole if arguments.verbose else whole.without_values()
        write(arguments, kept, text.render)
    else:
        try:
            page.write(whole, pages)
        except OSError as error:
            raise UsageError(f"{pages / page.INDEX}: {error.strerror}") from None
        if not arguments.quiet:
            files.write(None, f"{pages / page.INDEX}\n")
    return ExitCode.HEALTHY if arguments.exit_zero else exit_code(whole, arguments.fail_on)


def exit_code(found: FleetResult, fail_on: str) -> ExitCode:
    """As of one machine; the worst wins, and silence is no health."""
    counts = found.counts
    outliers = found.attribute_outliers or found.rate_outliers
    counted = {
        "fail": any(group.level == "fail" for group in found.groups),
        "degraded": counts.broken or counts.degraded,
        "warn": found.groups or outliers or found.copies,
    }
    if counted["fail"] or counted[fail_on]:
        return ExitCode.PROBLEMS
    silent = counts.silent or any(machine.reason for machine in found.machines)
    silent = silent or (found.network is not None and found.network.outcome == "could-not-run")
    return ExitCode.COULD_NOT_LOOK if silent else ExitCode.HEALTHY


def _pages_folder(output: str) -> Path:
    """Where pages go, made where it is not there. Raises UsageError."""
    path = Path(output)
    if path.exists() and not path.is_dir():
        raise UsageError(
            f"--output {output}: this is a file; the pages of a fleet need a directory"
        )
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror}") from None
    return path


def _judged(
    folder: FleetFolder,
    members: list[Member],
    profile: Profile | None,
    arguments: argparse.Namespace,
    pages: Path | None = None,
) -> tuple[list[JudgedMachine], NetworkResult | None]:
    """With the result of the directory's network.json, whose problems they have."""
    from ...fleet.network import in_fleet
    from ...fleet.workers import judged
    from ...reports.progress import StatusLine, with_time

    machines: list[JudgedMachine] = []
    since = time.monotonic()

    def text(columns: int) -> str:
        return with_time(f"{len(machines)} of {len(members)} machines judged", since, columns)

    with StatusLine(sys.stderr) as line:
        if not arguments.quiet:
            line.show(text)
        for machine in judged(folder, members, profile, pages):
            machines.append(machine)
    network = in_fleet.judged(folder.path)
    return machines if network is None else in_fleet.with_network(machines, network), network


def write(
    arguments: argparse.Namespace, found: FleetResult | NetworkResult, render: Callable[..., str]
) -> None:
    """In the form asked for. render: for people."""
    if arguments.format == "json":
        text = json_text.render(found)
    elif arguments.format == "openmetrics":
        from ...fleet.reports import openmetrics  # it takes the time of prometheus_client

        text = openmetrics.render(found)
    else:
        style = style_for(arguments.output)._asdict()
        text = render(found, verbose=arguments.verbose, brief=arguments.quiet, **style)
    files.write(arguments.output, text)
