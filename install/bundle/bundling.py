"""Puts everything for a machine without a network into one directory or tar: the stack's files, their
lock, and envcheck itself with all that it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import tomli_w
from packaging.specifiers import SpecifierSet

from ... import __version__
from ...exit_codes import Cannot, UsageError
from ..catalogue.model import PUBLIC, Release, Stack
from ..fit.choice import Candidate, Choice
from ..index.routes import Routes
from ..index.views import OpenIndex
from ..lock import lock_file
from ..lock.lock import Lock, LockedFile
from ..lock.resolve import resolve
from ..pythons import finding
from ..pythons.interpreter import Interpreter
from ..request import Request
from ..running import prepare
from ..running.prepare import Prepared
from ..store.progress import Fetching
from ..transaction.signals import ending_raises
from . import own_wheel, setup_script, writing
from .own_wheel import OwnWheel
from .writing import FILES, LOCK, STACK, Content, Listed, Manifest

OWN = "envcheck"  # the bundle's folder for envcheck itself

Say = Callable[[str], None]


def make(
    request: Request,
    output: Path,
    *,
    pythons: Sequence[str] = (),
    jobs: int = 8,
    say: Say,
    fetching: Callable[[Fetching], None],
) -> Manifest:
    """Write a bundle for machines like this one. Only from the main thread. Raises EnvcheckError.

    pythons: versions or paths of the interpreters that envcheck itself is to run under there; none: the
    version that it runs under here.
    """
    writing.check(output)
    own = own_wheel.build()
    runners = _interpreters(pythons or [sys.executable], own.requires_python)
    with ending_raises(), ExitStack() as exits:
        prepared = prepare.prepare(request, jobs, say, fetching, exits)
        say(f"resolving what envcheck itself needs, for Python {_listed(list(runners))}")
        tools = {minor: _tools(own, one, prepared) for minor, one in runners.items()}
        fetcher = prepared.fetcher
        wanted = [*prepared.located.files, *(f for lock in tools.values() for f in lock.files)]
        files = list({file.sha256: file for file in wanted}.values())
        writing.check_room(output, sum(file.size or 0 for file in files))
        say(f"fetching {len(files)} files")
        fetcher.want_all(files)
        fetcher.wait()
        contents = _contents(prepared, own, tools)
        manifest = Manifest(
            envcheck=__version__,
            stack=prepared.lock.stack,
            release=prepared.lock.release,
            python=prepared.lock.python,
            architecture=prepared.lock.architecture,
            created_at=prepared.lock.created_at,
            pythons=list(tools),
            files={name: Listed(c.sha256, c.size) for name, c in sorted(contents.items())},
        )
        say(f"writing {output}")
        writing.write(output, manifest, contents)
    return manifest


def _interpreters(pythons: Sequence[str], requires: str) -> dict[str, Interpreter]:
    """One for each minor version; raises UsageError for one that is too old, Cannot for one not found."""
    found: dict[str, Interpreter] = {}
    for python in pythons:
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


def _tools(own: OwnWheel, interpreter: Interpreter, prepared: Prepared) -> Lock:
    """What envcheck needs, locked by the same machinery as a stack, from the public index."""
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
    stack = Stack(
        name=own_wheel.DISTRIBUTION,
        title="envcheck",
        distribution=own_wheel.DISTRIBUTION,
        requirement=first,
        gpu=False,
        architectures=[interpreter.architecture],
        source="pyproject.toml",
        releases=[release],
    )
    choice = Choice(stack=stack, candidate=Candidate(release=release, interpreter=interpreter))
    public = [index for index in prepared.request.indexes if _is_public(index)]
    request = msgspec.structs.replace(prepared.request, indexes=public)
    assert prepared.machine.public is not None, "a bundle is not made from a bundle"
    routes = Routes(stack, request, prepared.machine.public)
    indexes = OpenIndex(routes, prepared.session, prepared.store, stack, prepared.fetcher)
    return resolve(choice, indexes=indexes, interpreter=interpreter, request=request)


def _is_public(index: str) -> bool:
    return index.startswith(("https://", "http://", f"{PUBLIC}="))


def _contents(prepared: Prepared, own: OwnWheel, tools: dict[str, Lock]) -> dict[str, Content]:
    """Every file of the bundle but its manifest."""
    contents = {f"{FILES}/{f.name}": _stored(f, prepared) for f in prepared.lock.files}
    contents[LOCK] = Content.of(lock_file.text(prepared.lock).encode())
    contents[STACK] = Content.of(stack_text(prepared.choice).encode())
    contents[f"{OWN}/{own.name}"] = Content.of(own.data)
    for minor, lock in tools.items():
        contents |= {f"{OWN}/{f.name}": _stored(f, prepared) for f in lock.files}
        others = [package for package in lock.packages if package.name != "pip"]
        itself = f"{own_wheel.DISTRIBUTION}=={__version__} --hash=sha256:{own.sha256}\n"
        listed = itself + lock_file.for_pip(lock, others)
        contents[f"{OWN}/requirements-{minor}.txt"] = Content.of(listed.encode())
    pip = next(p.file for lock in tools.values() for p in lock.packages if p.name == "pip")
    script = setup_script.script(list(tools), pip.name, pip.sha256)
    contents["setup.sh"] = Content.of(script.encode())
    return contents


def _stored(file: LockedFile, prepared: Prepared) -> Content:
    path = prepared.store.path(file.sha256)
    return Content(source=path, sha256=file.sha256, size=path.stat().st_size)


def stack_text(choice: Choice) -> str:
    """The stack as TOML, as it was chosen from: of its releases, the one."""
    stack = msgspec.structs.replace(choice.stack, releases=[choice.candidate.release])
    filled: dict[str, Any] = _filled(msgspec.to_builtins(stack))
    return tomli_w.dumps(filled)


def _filled(value: Any) -> Any:
    """Without what says nothing: "", 0, [] and {}. What is false stays, and says so."""
    if isinstance(value, dict):
        return {key: _filled(one) for key, one in value.items() if one or one is False}
    return [_filled(one) for one in value] if isinstance(value, list) else value


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
