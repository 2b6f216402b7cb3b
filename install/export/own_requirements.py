"""envcheck itself for another machine: what it needs under each Python, and the script that installs it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import msgspec
from packaging.specifiers import SpecifierSet

from ... import __version__
from .. import pylock
from ..bundle.index import OWN, BundleIndex
from ..bundle.writing import Content
from ..catalogue.model import PUBLIC, Release, Stack
from ..downloads import Downloads
from ..fit.models import Candidate, Choice
from ..lockfile import LockedFile, Lockfile
from ..mode import Reporter
from ..network.access import Access
from ..network.public_index import public_index
from ..pythons.interpreter import Interpreter, number
from ..request import Request
from ..wheels.indexes import Indexes
from ..wheels.resolve import resolve
from . import destinations, template
from .own_python import OwnPython
from .own_wheel import DISTRIBUTION, OwnWheel


def runners(interpreters: Iterable[Interpreter], requires: str) -> dict[str, Interpreter]:
    """By version, those under which envcheck can run: ``requires`` says which."""
    found: dict[str, Interpreter] = {}
    for one in interpreters:
        if SpecifierSet(requires).contains(one.version):
            found.setdefault(one.minor, one)
    return {minor: found[minor] for minor in sorted(found, key=number)}


def locks(
    own: OwnWheel,
    runners: Mapping[str, Interpreter],
    request: Request,
    access: Access,
    reporter: Reporter,
) -> dict[str, Lockfile]:
    """What envcheck needs under each of them, on another machine. Raises EnvcheckError."""
    reporter.say(f"resolving what envcheck itself needs, for Python {', '.join(runners)}")
    return {
        minor: locked(own, destinations.away(one), request, access)
        for minor, one in runners.items()
    }


def locked(own: OwnWheel, interpreter: Interpreter, request: Request, access: Access) -> Lockfile:
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
    indexes = Indexes(stack, request, public_index(dict(os.environ)), access)
    return resolve(Choice(stack=stack, candidate=candidate), indexes)


def files(locks: Mapping[str, Lockfile]) -> list[LockedFile]:
    """Every file of the locks, each once. locks: by minor version of Python."""
    return list({file.sha256: file for lock in locks.values() for file in lock.files}.values())


def contents(
    own: OwnWheel,
    locks: Mapping[str, Lockfile],
    downloads: Downloads,
    index: BundleIndex,
    python: OwnPython | None = None,
) -> dict[str, Content]:
    """envcheck's part of a bundle, by names. python: the interpreter that goes along."""
    made = {f"{OWN}/{own.name}": Content.of(own.data)}
    made |= {f"{OWN}/{file.name}": Content.stored(downloads, file) for file in files(locks)}
    for minor, lock in locks.items():
        needed = pylock.for_pip(p for p in lock.packages if p.name != "pip")
        text = f"{own.requirement}\n{needed}"
        made[f"{OWN}/requirements-{minor}.txt"] = Content.of(text.encode())
    pip = next(p.file for lock in locks.values() for p in lock.packages if p.name == "pip")
    known = sorted({*locks, index.python} - {""}, key=number, reverse=True)
    script = template.render(
        "setup.sh.j2",
        names=" ".join(["python3", *(f"python{minor}" for minor in known)]),
        pythons=" or ".join(locks),
        minors=index.python,
        own_minors=" ".join(locks),
        carries=python.name if python else "",
        carried_minor=python.minor if python else "",
        carried_sha256=python.content.sha256 if python else "",
        pip=pip.name,
        pip_sha256=pip.sha256,
    )
    made["setup.sh"] = Content.of(script.encode())
    return made
