"""What envcheck itself needs, locked by the same machinery as a stack, from the public index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ... import __version__
from ..catalogue.model import PUBLIC, Release, Stack
from ..fit.models import Candidate, Choice
from ..lockfile import Lockfile
from ..pythons.interpreter import Interpreter
from ..request import Request
from ..wheels.indexes import Indexes
from ..wheels.resolve import resolve
from . import own_wheel
from .own_wheel import OwnWheel

if TYPE_CHECKING:
    from ..network.public_index import PublicIndex
    from ..network.session import Session


def lock_of(
    own: OwnWheel,
    interpreter: Interpreter,
    request: Request,
    *,
    public: PublicIndex,
    session: Session,
) -> Lockfile:
    """The lock for that interpreter; of the request's indexes, the public one counts.

    Raises EnvcheckError.
    """
    stack = _stack(own, interpreter)
    choice = Choice(
        stack=stack, candidate=Candidate(release=stack.releases[0], interpreter=interpreter)
    )
    indexes = [index for index in request.indexes if _is_public(index)]
    request = msgspec.structs.replace(request, indexes=indexes)
    return resolve(choice, Indexes(stack, request, public, session))


def _stack(own: OwnWheel, interpreter: Interpreter) -> Stack:
    first, *others = [
        requirement.replace("{", "{{").replace("}", "}}") for requirement in own.requires
    ]
    release = Release(
        release=__version__,
        version=__version__,
        python=[interpreter.minor],
        source="pyproject.toml",
        extra_requirements=[other.format() for other in others],
    )
    return Stack(
        name=own_wheel.DISTRIBUTION,
        title="envcheck",
        distribution=own_wheel.DISTRIBUTION,
        requirement=first,
        gpu=False,
        architectures=[interpreter.architecture],
        source="pyproject.toml",
        releases=[release],
    )


def _is_public(index: str) -> bool:
    return index.startswith(("https://", "http://", f"{PUBLIC}="))
