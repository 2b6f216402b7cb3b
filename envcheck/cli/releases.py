"""`envcheck releases`: installable releases, and why others do not fit."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from .. import json_text
from ..exit_codes import ExitCode, UsageError
from . import files, sources, stacks
from .commands import lines_in_place
from .parser import Parser
from .style import style_for

if TYPE_CHECKING:
    from ..facts.snapshot import Snapshot
    from ..install.reports.releases import Releases
    from .offers import Known

EPILOG = """\
examples:
  envcheck releases                      every stack, judged for this machine
  envcheck releases tensorflow --all     one stack, down to its oldest release
  envcheck releases --mode container     NVIDIA's containers
  envcheck releases --from machine.json  what another machine could have

"if named": installed only where --release names it: a pre-release, or one of
which something is not known. "perhaps": nothing speaks against it, but not
all that matters is known of the machine. Nothing is downloaded for this."""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    stacks.add_arguments(parser, "all that --mode has")
    parser.add_argument(
        "--flavour",
        choices=("tf1", "tf2"),
        default="",
        metavar="FLAVOUR",
        help="of the containers: tf1 or tf2",
    )
    parser.add_argument("--all", action="store_true", help="show the older releases, too")
    parser.rare("--stack", "--flavour")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--python", metavar="PYTHON", default="", help="judge for this version or interpreter"
    )
    where.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="judge the machine of the Snapshot in this file (- is standard input)",
    )
    files.add_format(parser, json="for programs")
    files.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    files.check_writable(arguments.output)
    stacks.settle(arguments)
    _agree(arguments)
    matrix = _containers(arguments) if arguments.mode == "container" else _wheels(arguments)
    if arguments.format == "json":
        text = json_text.render(matrix)
    else:
        from ..install.reports import release_table

        style = style_for(arguments.output)._asdict()
        text = release_table.render(matrix, everything=arguments.all, **style)
        text = lines_in_place(text)
    files.write(arguments.output, text)
    return ExitCode.HEALTHY


def _agree(arguments: argparse.Namespace) -> None:
    """Raises UsageError for an option that says nothing about what is asked for."""
    if arguments.mode == "container" and arguments.python:
        raise UsageError(
            "--python is for wheels: a container has its own", "leave out --python, or --mode"
        )
    if arguments.mode == "wheel" and arguments.flavour:
        raise UsageError(
            "--flavour is for containers",
            "envcheck releases ngc-tf1 or ngc-tf2 shows them",
        )


def _wheels(arguments: argparse.Namespace) -> Releases:
    from ..install.catalogue import load
    from ..install.fit.fit import fit
    from ..install.reports.releases import build
    from ..install.request import Request
    from ..reports.machine import describe_machine
    from . import offers

    request = Request(stack=arguments.stack or "", python=arguments.python)
    names = [request.stack] if request.stack else load.names()
    wanted = [load.load(name) for name in names]
    known = _look(arguments)
    return build(
        describe_machine(known.snapshot).summary,
        [
            fit(stack, known.snapshot, known.interpreters, known.obtainable, request, known.space)
            for stack in wanted
        ],
        *offers.of_wheels(request, known, names),
    )


def _containers(arguments: argparse.Namespace) -> Releases:
    from ..install.catalogue.containers import among, flavours
    from ..install.fit.fit import fit_images
    from ..install.reports.releases import build
    from ..install.request import Request
    from ..reports.machine import describe_machine
    from . import offers

    flavour = stacks.containers().get(arguments.stack or "", arguments.flavour)
    request = Request(mode="container", flavour=flavour)
    wanted = among("", flavour) if flavour else flavours()
    snapshot = _snapshot(arguments)
    return build(
        describe_machine(snapshot).summary,
        [fit_images(stack, snapshot) for stack in wanted],
        *offers.of_containers(request, snapshot),
        mode="container",
    )


def _look(arguments: argparse.Namespace) -> Known:
    """At this machine, or into the file; its Pythons are not in a Snapshot."""
    from ..install.fit.disk_space import space_at, space_of_snapshot
    from .offers import Known

    if arguments.source is not None:
        snapshot = _snapshot(arguments)
        return Known(snapshot, None, [], space_of_snapshot(snapshot))
    from ..install import places
    from ..install.pythons import finding

    interpreters = finding.interpreters(arguments.python)
    snapshot = _snapshot(arguments)
    space = space_at(places.environments(), snapshot)
    return Known(snapshot, interpreters, finding.obtainable(), space)


def _snapshot(arguments: argparse.Namespace) -> Snapshot:
    if arguments.source is not None:
        return sources.read_snapshot(arguments.source).snapshot
    from .. import collection
    from ..reports.progress import Progress

    with Progress(sys.stderr) as progress:
        # Reasons name real paths; nothing else of the Snapshot is shown.
        return collection.collect(redact=False, progress=progress.update).snapshot
