"""Which command would install what on a machine: the installer's own choice, asked for each command."""

from __future__ import annotations

import shlex
from typing import NamedTuple

import msgspec

from ..exit_codes import Cannot
from ..facts.snapshot import Snapshot
from ..install.catalogue.containers import flavours
from ..install.catalogue.model import Stack
from ..install.engines import choose as engine_choice
from ..install.fit.disk_space import DiskSpace
from ..install.fit.select import choose, choose_image
from ..install.pythons.interpreter import Interpreter
from ..install.reports.releases import Chosen
from ..install.request import Request

_MAY_BE = "what is not known of this machine may yet rule it out"
_SILENT = "its index does not answer"


class Known(NamedTuple):
    """What releases of wheels are judged by."""

    snapshot: Snapshot
    interpreters: list[Interpreter] | None  # None: not known
    obtainable: list[str]
    space: DiskSpace | None


def of_wheels(
    request: Request, known: Known, stacks: list[str]
) -> tuple[Chosen, Chosen | None, list[Chosen]]:
    """What the request would take; what instead, where its index does not answer; what the commands that
    name one of the stacks would, as far as they would take something."""
    asked: list[str] = []
    first = _wheels(request, known, "", asked)
    second = _wheels(request, known, _SILENT, asked) if asked else None
    named = [msgspec.structs.replace(request, stack=name) for name in stacks if not request.stack]
    others = [_wheels(one, known, "", asked) for one in named]
    return first, second, [one for one in others if not one.refused]


def of_containers(request: Request, snapshot: Snapshot) -> tuple[Chosen, None, list[Chosen]]:
    """The same for containers; where an image fits and no engine works, nothing is taken."""
    named = [
        msgspec.structs.replace(request, flavour=stack.flavour)
        for stack in flavours()
        if not request.flavour
    ]
    others = [_container(one, snapshot) for one in named]
    return _container(request, snapshot), None, [one for one in others if not one.refused]


def _wheels(request: Request, known: Known, silence: str, asked: list[str]) -> Chosen:
    def answers(stack: Stack) -> str:
        asked.append(stack.name)
        return silence

    words = [*([request.stack] if request.stack else [])]
    words += ["--python", request.python] if request.python else []
    command = shlex.join(["envcheck", "install", *words])
    snapshot, interpreters, obtainable, space = known
    try:
        choice = choose(request, snapshot, interpreters, obtainable, answers, space=space)
    except Cannot as error:
        return Chosen(command=command, refused=str(error), hint=error.hint)
    candidate = choice.candidate
    found, to_get = candidate.interpreter, candidate.python_to_get
    return Chosen(
        command=command,
        stack=choice.stack.name,
        release=candidate.release.release,
        python=found.path if found else f"Python {to_get}, which uv gets" if to_get else "",
        reasons=choice.reasons + [_MAY_BE] * candidate.open,
    )


def _container(request: Request, snapshot: Snapshot) -> Chosen:
    named = next((one.name for one in flavours() if one.flavour == request.flavour), "")
    command = f"envcheck install {named or '--mode container'}"
    try:
        choice = choose_image(request, snapshot)
        engine = engine_choice.choose("", snapshot)
    except Cannot as error:
        return Chosen(command=command, refused=str(error).rstrip("."), hint=error.hint)
    return Chosen(
        command=command,
        stack=choice.stack.name,
        release=choice.candidate.release.release,
        reference=choice.candidate.release.reference,
        engine=engine.name,
        reasons=choice.reasons + [_MAY_BE] * choice.candidate.open,
    )
