"""Puts everything for a machine without a network into one directory or tar: the stack's files, their
lock, and envcheck itself with all that it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from ... import __version__
from .. import pylock
from ..bundle import writing
from ..bundle.index import FILES, LOCK, STACK, BundleFile, BundleIndex
from ..bundle.writing import Content
from ..fit.models import Choice
from ..lockfile import Lockfile
from ..mode import InstallOptions, Reporter
from ..pipeline import opened
from ..pythons.interpreter import Interpreter
from ..request import Request
from ..store.store import Store
from ..wheels.builder import ResolvedWheels
from ..wheels.mode import WheelMode
from . import own_lock as needs
from . import own_parts, own_wheel
from .own_wheel import OwnWheel


def make(
    request: Request,
    output: Path,
    *,
    pythons: Sequence[str] = (),
    jobs: int = 8,
    reporter: Reporter,
) -> BundleIndex:
    """Write a bundle for machines like this one. Only from the main thread. Raises EnvcheckError.

    pythons: as ``own_parts.interpreters`` takes them.
    """
    writing.check(output)
    own = own_wheel.build()
    runners = own_parts.interpreters(pythons, own.requires_python)
    say = reporter.say
    with opened(request, InstallOptions(jobs=jobs), reporter) as mode:
        assert isinstance(mode, WheelMode), "the request names wheels"
        resolved = mode.resolve(mode.fit())
        lock = resolved.lock
        say(f"resolving what envcheck itself needs, for Python {own_parts.listed(list(runners))}")
        tools = {minor: _tools(own, one, mode) for minor, one in runners.items()}
        fetcher = mode.fetcher
        wanted = [*resolved.downloads.files, *own_parts.files(tools)]
        files = list({file.sha256: file for file in wanted}.values())
        writing.check_room(output, sum(file.size or 0 for file in files))
        say(f"fetching {len(files)} files")
        fetcher.want_all(files)
        fetcher.wait()
        contents = _contents(resolved, mode.store, own, tools, output)
        manifest = BundleIndex(
            envcheck=__version__,
            stack=lock.stack,
            release=lock.release,
            python=lock.python,
            architecture=lock.architecture,
            created_at=lock.created_at,
            pythons=list(tools),
            files={name: BundleFile(c.sha256, c.size) for name, c in sorted(contents.items())},
        )
        say(f"writing {output}")
        writing.write(output, manifest, contents)
    return manifest


def _tools(own: OwnWheel, interpreter: Interpreter, mode: WheelMode) -> Lockfile:
    assert mode.machine.public is not None, "a bundle is not made from a bundle"
    return needs.lock_of(
        own,
        interpreter,
        mode.request,
        public=mode.machine.public,
        session=mode.session,
    )


def _contents(
    resolved: ResolvedWheels,
    store: Store,
    own: OwnWheel,
    tools: dict[str, Lockfile],
    output: Path,
) -> dict[str, Content]:
    """Every file of the bundle but its manifest."""
    stored, lock = store.path, resolved.lock
    contents = {f"{FILES}/{f.name}": own_parts.of_store(f, stored) for f in lock.files}
    contents[LOCK] = Content.of(pylock.text(lock).encode())
    contents[STACK] = Content.of(stack_text(resolved.choice).encode())
    return contents | own_parts.contents(own, tools, stored, "wheel", output)


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
