"""envcheck itself for another machine: what it needs under each Python, and the script that installs it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.specifiers import SpecifierSet

from ... import __version__
from ...exit_codes import Cannot, UsageError
from .. import pylock
from ..bundle.index import OWN
from ..bundle.writing import Content, is_tar
from ..catalogue.model import PUBLIC, Release, Stack
from ..fit.models import Candidate, Choice
from ..lockfile import LockedFile, Lockfile
from ..network.public_index import public_index
from ..pythons import finding
from ..pythons.interpreter import Interpreter
from ..request import Request
from ..store.store import Store
from ..wheels.indexes import Indexes
from ..wheels.resolve import resolve
from . import template
from .own_wheel import DISTRIBUTION, OwnWheel

if TYPE_CHECKING:
    from ..network.session import Session


def interpreters(pythons: Sequence[str], requires: str) -> dict[str, Interpreter]:
    """One for each minor version that envcheck is to run under there.

    pythons: versions or paths; none: the one that it runs under here. Raises UsageError for one that is too
    old, Cannot for one that is not found.
    """
    found: dict[str, Interpreter] = {}
    for python in pythons or [sys.executable]:
        there = finding.interpreters(python)
        if not there:
            raise Cannot(
                f"--for-python {python}: there is no such Python on this machine, so which wheels it"
                " takes is not known",
                "install it, or name another",
            )
        if not SpecifierSet(requires).contains(there[0].version):
            raise UsageError(
                f"--for-python {python}: envcheck needs Python {requires}, and this is"
                f" {there[0].version}",
                "--python names the Python of the stack, which may be older",
            )
        found.setdefault(there[0].minor, there[0])
    return found


def locked(own: OwnWheel, interpreter: Interpreter, request: Request, session: Session) -> Lockfile:
    """What envcheck needs under that interpreter, locked as a stack is, from the public index alone.

    Raises EnvcheckError.
    """
    first, *others = [line.replace("{", "{{").replace("}", "}}") for line in own.requires]
    release = Release(
        release=__version__,
        version=__version__,
        python=[interpreter.minor],
        source="pyproject.toml",
        extra_requirements=[other.format() for other in others],
    )
    stack = Stack(
        name=DISTRIBUTION,
        title="envcheck",
        distribution=DISTRIBUTION,
        requirement=first,
        gpu=False,
        architectures=[interpreter.architecture],
        source="pyproject.toml",
        releases=[release],
    )
    public = ("https://", "http://", f"{PUBLIC}=")
    named = [index for index in request.indexes if index.startswith(public)]
    request = msgspec.structs.replace(request, indexes=named)
    candidate = Candidate(release=release, interpreter=interpreter)
    indexes = Indexes(stack, request, public_index(dict(os.environ)), session)
    return resolve(Choice(stack=stack, candidate=candidate), indexes)


def lines(lock: Lockfile) -> list[str]:
    """A list of requirements for an environment that needs no pip."""
    return pylock.for_pip([p for p in lock.packages if p.name != "pip"]).splitlines()


def files(locks: Mapping[str, Lockfile]) -> list[LockedFile]:
    """Every file of the locks, each once. locks: by minor version of Python."""
    return list({file.sha256: file for lock in locks.values() for file in lock.files}.values())


def contents(
    own: OwnWheel,
    locks: Mapping[str, Lockfile],
    store: Store,
    mode: str,
    output: Path,
) -> dict[str, Content]:
    """envcheck's part of a bundle, by names. mode, output: of the bundle."""
    made = {f"{OWN}/{own.name}": Content.of(own.data)}
    made |= {f"{OWN}/{file.name}": Content.stored(store, file) for file in files(locks)}
    for minor, lock in locks.items():
        listed = "\n".join([own.requirement, *lines(lock), ""])
        made[f"{OWN}/requirements-{minor}.txt"] = Content.of(listed.encode())
    pip = next(p.file for lock in locks.values() for p in lock.packages if p.name == "pip")
    script = template.fill(
        "setup.sh",
        {
            "names": " ".join(["python3", *(f"python{minor}" for minor in locks)]),
            "pythons": " or ".join(locks),
            "pip": pip.name,
            "pip_sha256": pip.sha256,
            "mode": mode,
            "tar": shlex.quote(output.name) if is_tar(output) else "",
        },
    )
    made["setup.sh"] = Content.of(script.encode())
    return made
