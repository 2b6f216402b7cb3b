"""`envcheck releases`: what could be installed here, and why the rest could not."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from ..exit_codes import Cannot, ExitCode, UsageError
from . import files, sources, stacks
from .parser import Parser
from .style import style_for

if TYPE_CHECKING:
    from ..install.catalogue.model import Stack
    from ..install.fit.choice import StackFit
    from ..install.fit.room import RoomAt
    from ..install.pythons.interpreter import Interpreter
    from ..install.request import Request
    from ..reports.releases import Chosen
    from ..snapshot import Snapshot

EPILOG = """\
examples:
  envcheck releases                      every stack, judged for this machine
  envcheck releases tensorflow --all     one stack, down to its oldest release
  envcheck releases --mode container     NVIDIA's containers
  envcheck releases --from machine.json  what another machine could have

"if named": installed only where --release names it: a pre-release, or one of
which something is not known. "perhaps": nothing speaks against it, but not
all that matters is known of the machine. Nothing is downloaded for this."""

_MAY_BE = "what is not known of this machine may yet rule it out"


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
    as_json = arguments.format == "json"
    look = {"everything": arguments.all, **style_for(arguments.output)._asdict()}
    told = _containers if arguments.mode == "container" else _wheels
    files.write(arguments.output, told(arguments, as_json, look))
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


def _wheels(arguments: argparse.Namespace, as_json: bool, look: dict[str, Any]) -> str:
    from ..install.catalogue import load
    from ..install.request import Request
    from ..reports import releases as report
    from ..reports.machine import describe_machine

    request = Request(stack=arguments.stack or "", python=arguments.python)
    stacks = [load.load(name) for name in ([request.stack] if request.stack else load.names())]
    known = _look(arguments)
    matrix = report.build(
        describe_machine(known.snapshot).summary,
        [_fit(stack, known, request) for stack in stacks],
        *_chosen(request, known),
    )
    return report.render_json(matrix) if as_json else report.render(matrix, **look)


def _containers(arguments: argparse.Namespace, as_json: bool, look: dict[str, Any]) -> str:
    from ..install.fit import image_choose, image_words
    from ..install.fit.image_fit import judge
    from ..install.request import Request
    from ..reports import image_releases as report
    from ..reports.machine import describe_machine

    request = Request(mode="container", stack=arguments.stack or "", flavour=arguments.flavour)
    stacks = image_words.stacks(request)
    snapshot = _snapshot(arguments)
    try:
        choice = image_choose.choose(request, snapshot)
        chosen = report.ImageChosen(
            stack=choice.stack.name,
            release=choice.release.release if choice.release is not None else "",
            reference=choice.reference,
            reasons=choice.reasons + [_MAY_BE] * choice.open,
        )
    except Cannot as error:
        chosen = report.ImageChosen(refused=str(error), hint=error.hint)
    matrix = report.build(
        describe_machine(snapshot).summary, [judge(stack, snapshot) for stack in stacks], chosen
    )
    return report.render_json(matrix) if as_json else report.render(matrix, **look)


class _Known(NamedTuple):
    """What the releases are judged by."""

    snapshot: Snapshot
    interpreters: list[Interpreter] | None
    obtainable: list[str]
    room: RoomAt | None


def _look(arguments: argparse.Namespace) -> _Known:
    """At this machine, or into the file; its Pythons are not in a Snapshot."""
    from ..install.fit.room import room_of_snapshot

    if arguments.source is not None:
        snapshot = _snapshot(arguments)
        return _Known(snapshot, None, [], room_of_snapshot(snapshot))
    from ..install.pythons import finding
    from ..install.request import Request
    from ..install.running import survey

    interpreters = finding.interpreters(arguments.python)
    snapshot = _snapshot(arguments)
    room = survey.room(Request(), snapshot)
    return _Known(snapshot, interpreters, finding.obtainable(), room)


def _snapshot(arguments: argparse.Namespace) -> Snapshot:
    if arguments.source is not None:
        return sources.read_snapshot(arguments.source).snapshot
    from .. import collection
    from ..reports.progress import Progress

    with Progress(sys.stderr) as progress:
        # Reasons name real paths; nothing else of the Snapshot is shown.
        return collection.collect(redact=False, progress=progress.update).snapshot


def _fit(stack: Stack, known: _Known, request: Request) -> StackFit:
    from ..install.fit.fit import fit

    return fit(stack, known.snapshot, known.interpreters, known.obtainable, request, known.room)


def _chosen(request: Request, known: _Known) -> tuple[Chosen, Chosen | None]:
    """What would be installed, and what instead where its own index does not answer."""
    from ..install.fit.choose import choose
    from ..reports.releases import Chosen

    asked = []

    def taken(silence: str) -> Chosen:
        def answers(stack: Stack) -> str:
            asked.append(stack.name)
            return silence

        try:
            choice = choose(
                request,
                known.snapshot,
                known.interpreters,
                known.obtainable,
                answers,
                room=known.room,
            )
        except Cannot as error:
            return Chosen(refused=str(error), hint=error.hint)
        candidate = choice.candidate
        found, to_get = candidate.interpreter, candidate.python_to_get
        return Chosen(
            stack=choice.stack.name,
            release=candidate.release.release,
            python=found.path if found else f"Python {to_get}, which uv gets" if to_get else "",
            reasons=choice.reasons + [_MAY_BE] * candidate.open,
        )

    first = taken("")
    return first, taken("its index does not answer") if asked else None
