"""Puts everything for a machine without a network into one directory or tar.

That is: a stack's packages with their lock and their Python, and envcheck with what it needs.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ... import scratch
from ...exit_codes import Cannot, CouldNotLook
from .. import pipeline, pylock, survey
from ..bundle import writing
from ..bundle.index import BundleIndex
from ..fit import select
from ..fit.models import Choice
from ..mode import Reporter
from ..request import Request
from ..wheels import given_lock
from . import elsewhere, own_python, own_requirements
from .destinations import Destinations
from .own_python import OwnPython


def make(
    request: Request,
    output: Path,
    *,
    wanted: Destinations,
    reporter: Reporter,
) -> BundleIndex:
    """Write a bundle for these machines. Only from the main thread. Raises EnvcheckError."""
    writing.check(output)
    with pipeline.prepared(request), scratch.directory() as folder:
        shop = elsewhere.ElsewhereShop(request, reporter)
        given = pylock.read(Path(request.lock)) if request.lock else None
        if given is not None:
            stack, release = request.stack or given.stack, given.release
            request = msgspec.structs.replace(request, stack=stack, release=release)
            wanted = msgspec.structs.replace(wanted, python=wanted.python or given.python)
        choice = _chosen(request, wanted, shop, reporter)
        if given is not None:
            given_lock.check(given, choice, request.lock)
        lock = given or shop.lock(choice)
        python = _own_python(lock.python, wanted, folder, reporter)
        interpreters = [*wanted.of_envcheck(), wanted.with_python(lock.python)]
        return shop.write(
            output,
            elsewhere.index_of(lock),
            own_requirements.runners(interpreters, shop.own_python),
            lock,
            elsewhere.stack_text(choice),
            python=python,
        )


def _chosen(
    request: Request, wanted: Destinations, shop: elsewhere.ElsewhereShop, reporter: Reporter
) -> Choice:
    """The newest release for these machines. Raises Cannot where none fits, or each needs another one."""
    snapshots = wanted.machines
    if not snapshots:
        reporter.say("looking at this machine")
        snapshots = {"": survey.collecting().result().snapshot}
    interpreters = wanted.of_stack()
    request = msgspec.structs.replace(request, python="")
    choices = [
        select.choose(request, snapshot, interpreters, [], shop.answers)
        for snapshot in snapshots.values()
    ]
    first = choices[0]
    for one in choices[1:]:
        if (one.stack.name, one.candidate.release) != (first.stack.name, first.candidate.release):
            raise Cannot(
                f"{first.stack.name} {first.candidate.release.release} fits one of these machines best, and"
                f" {one.stack.name} {one.candidate.release.release} another",
                "name the stack and the release, or make a bundle for each of them",
            )
    return first


def _own_python(
    minor: str, wanted: Destinations, folder: Path, reporter: Reporter
) -> OwnPython | None:
    """None where uv cannot get it."""
    reporter.say(f"getting Python {minor}, for machines that have none")
    try:
        return own_python.get(minor, wanted.architecture, folder)
    except CouldNotLook as error:
        reporter.say(f"the bundle carries no Python of its own: {error}")
        return None
