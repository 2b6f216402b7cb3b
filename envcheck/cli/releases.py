"""`envcheck releases`: installable releases, and why others do not fit."""

from __future__ import annotations

import argparse
import functools
import shlex
import sys
from typing import TYPE_CHECKING

from ..exit_codes import Cannot, ExitCode, UsageError
from . import files, options, sources, stacks
from .options import flag, option
from .parser import Parser

if TYPE_CHECKING:
    from ..facts.snapshot import Snapshot
    from ..install.catalogue.model import Stack
    from ..install.reports.releases import Chosen, Releases

EPILOG = """\
examples:
  envcheck releases                      every stack, judged for this machine
  envcheck releases tensorflow --all     one stack, down to its oldest release
  envcheck releases --from machine.json  releases for another machine

"if named": installed only if --release names it: a pre-release, or one whose
requirements are not all known. "perhaps": nothing prevents it, but some facts
about the machine are not known. Nothing is downloaded for this list."""

_MAY_BE = "what is not known of this machine may yet rule it out"
_IF_ANSWERS = "it is taken if its index answers, else the next that fits"


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    stacks.add_arguments(parser, "all that --mode has")
    flag(parser, "--all", "show the older releases, too")
    where = parser.add_mutually_exclusive_group()
    words = "judge for this version or interpreter"
    option(where, "--python", "PYTHON", words, default="")
    options.add_from(where, "judge the machine of the Snapshot in this file")
    options.add_format(parser, json="for programs")
    options.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..install.reports import release_table

    files.check_writable(arguments.output)
    stacks.settle(arguments)
    if arguments.mode == "container" and arguments.python:
        raise UsageError(
            "--python is for wheels: a container has its own Python", "leave out --python or --mode"
        )
    matrix = _containers(arguments) if arguments.mode == "container" else _wheels(arguments)
    render = functools.partial(release_table.render, everything=arguments.all)
    files.show(arguments, matrix, render)
    return ExitCode.HEALTHY


def _wheels(arguments: argparse.Namespace) -> Releases:
    """Of this machine, or of the file's, whose Pythons a Snapshot does not have."""
    from ..install import places
    from ..install.catalogue import load
    from ..install.fit.disk_space import space_at, space_of_snapshot
    from ..install.fit.fit import fit
    from ..install.fit.select import choose
    from ..install.pythons import finding
    from ..install.reports.releases import Chosen, Releases, rows
    from ..install.request import Request
    from ..reports.machine import describe_machine

    request = Request(stack=arguments.stack or "", python=arguments.python)
    wanted = [load.load(name) for name in ([request.stack] if request.stack else load.names())]
    here = arguments.source is None
    pythons = finding.interpreters(arguments.python) if here else None
    obtainable = finding.obtainable() if here else []
    seen = _snapshot(arguments)
    space = space_at(places.environments()) if here else space_of_snapshot(seen)
    judged = [fit(stack, seen, pythons, obtainable, request, space) for stack in wanted]
    asked: list[str] = []  # stacks whose index would be asked, which this command does not
    words = [request.stack] if request.stack else []
    words += ["--python", request.python] if request.python else []
    command = shlex.join(["envcheck", "install", *words])

    def answers(stack: Stack) -> str:
        asked.append(stack.name)
        return ""

    try:
        choice = choose(request, seen, pythons, obtainable, answers, space=space)
    except Cannot as error:
        chosen = Chosen(command=command, refused=str(error), hint=error.hint)
    else:
        found, to_get = choice.candidate.interpreter, choice.candidate.python_to_get
        chosen = Chosen(
            command=command,
            stack=choice.stack.name,
            release=choice.candidate.release.release,
            where=found.path if found else f"Python {to_get}, which uv gets" if to_get else "",
            reasons=[
                *choice.reasons,
                *[_MAY_BE] * choice.candidate.open,
                *[_IF_ANSWERS] * bool(asked),
            ],
        )
    machine = describe_machine(seen).summary
    return Releases(mode="wheel", machine=machine, chosen=chosen, stacks=rows(judged))


def _containers(arguments: argparse.Namespace) -> Releases:
    from ..install.catalogue.containers import among, flavours
    from ..install.fit.fit import fit_images
    from ..install.reports.releases import Releases, rows
    from ..reports.machine import describe_machine

    flavour = stacks.containers().get(arguments.stack or "", "")
    snapshot = _snapshot(arguments)
    wanted = among(flavour) if flavour else flavours()  # type: ignore[arg-type]  # the catalogue's
    return Releases(
        mode="container",
        machine=describe_machine(snapshot).summary,
        chosen=_chosen_image(arguments.stack or "", flavour, snapshot),
        stacks=rows(fit_images(stack, snapshot) for stack in wanted),
    )


def _chosen_image(stack: str, flavour: str, snapshot: Snapshot) -> Chosen:
    """Where an image fits and no engine works, nothing is installed."""
    from ..install.engines import choose as engine_choice
    from ..install.fit.select import choose_image
    from ..install.reports.releases import Chosen
    from ..install.request import Request

    command = f"envcheck install {stack or '--mode container'}"
    request = Request(mode="container", flavour=flavour)  # type: ignore[arg-type]  # the catalogue's
    try:
        choice = choose_image(request, snapshot)
        engine = engine_choice.choose("", snapshot)
    except Cannot as error:
        return Chosen(command=command, refused=str(error).rstrip("."), hint=error.hint)
    return Chosen(
        command=command,
        stack=choice.stack.name,
        release=choice.candidate.release.release,
        where=engine.name,
        reasons=choice.reasons + [_MAY_BE] * choice.candidate.open,
    )


def _snapshot(arguments: argparse.Namespace) -> Snapshot:
    if arguments.source is not None:
        return sources.read_snapshot(arguments.source).snapshot
    from .. import collection
    from ..reports.progress import Progress

    with Progress(sys.stderr) as progress:
        # Reasons name real paths; nothing else of the Snapshot is shown.
        return collection.collect(redact=False, progress=progress.update).snapshot
