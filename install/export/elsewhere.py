"""Bundles for machines that are not this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from ... import __version__
from .. import places, pylock, survey
from ..bundle import writing
from ..bundle.index import FILES, LOCK, PYTHON, STACK, BundleFile, BundleIndex
from ..bundle.writing import Content
from ..catalogue.model import Stack
from ..downloads import Downloads
from ..fit import select
from ..fit.disk_space import space_at
from ..fit.models import Choice
from ..lockfile import LockedFile, Lockfile
from ..mode import Reporter
from ..network.access import Access
from ..plan.shared import DiskUse, disk_needs
from ..progress import Meter, size
from ..pythons.interpreter import Interpreter
from ..request import Request
from ..wheels.indexes import Indexes
from ..wheels.resolve import resolve
from . import destinations, own_requirements, own_wheel
from .own_python import OwnPython


class ElsewhereShop:
    """The indexes and the downloads. Only from the main thread."""

    def __init__(self, request: Request, reporter: Reporter) -> None:
        self._request = request
        self._reporter = reporter
        self._access = Access(request.allow_insecure)
        self._public = survey.public_for(request)
        self._downloads = Downloads(self._access)
        self._own = own_wheel.build()

    @property
    def own_python(self) -> str:
        """Which Pythons envcheck itself runs with: ">=3.10"."""
        return self._own.requires_python

    def answers(self, stack: Stack) -> str:
        """ "" where the stack's own indexes answer, else the sentence that says what does not."""
        return self._indexes(stack).answers()

    def lock(self, choice: Choice) -> Lockfile:
        """What is to be installed, for the choice's interpreter. Raises Cannot, CouldNotLook."""
        interpreter = choice.candidate.interpreter
        assert interpreter is not None, "nothing can be got there"
        self._reporter.say(
            f"resolving {choice.stack.name} {choice.candidate.release.release} for Python"
            f" {interpreter.minor}"
        )
        away = msgspec.structs.replace(choice.candidate, interpreter=destinations.away(interpreter))
        chosen = msgspec.structs.replace(choice, candidate=away)
        return resolve(chosen, self._indexes(choice.stack))

    def write(
        self,
        output: Path,
        index: BundleIndex,
        runners: Mapping[str, Interpreter],
        lock: Lockfile,
        stack: str,
        *,
        python: OwnPython | None = None,
    ) -> BundleIndex:
        """Fetch what is missing, and write the bundle. Raises EnvcheckError.

        runners: what envcheck itself runs with there, by minor version. stack: its text. python: an
        interpreter that goes along.
        """
        writing.check(output)
        own = own_requirements.locks(
            self._own, runners, self._request, self._access, self._reporter
        )
        files = lock.files
        wanted = [*files, *own_requirements.files(own)]
        missing = [file for file in wanted if not self._downloads.has(file)]
        uses = [
            DiskUse(space_at(output.parent), "the bundle", _bytes(wanted), estimated=False),
            DiskUse(
                space_at(places.downloads()), "fetched files", _bytes(missing), estimated=False
            ),
        ]
        disk_needs(uses, "--output PLACE names another file system, XDG_CACHE_HOME another cache")
        self._reporter.say(f"fetching {len(wanted)} files, {size(_bytes(wanted))}")
        self._downloads.fetch(wanted, Meter(self._reporter.progress))
        contents = {f"{FILES}/{file.name}": Content.stored(self._downloads, file) for file in files}
        contents[LOCK] = Content.of(pylock.text(lock).encode())
        contents[STACK] = Content.of(stack.encode())
        if python is not None:
            contents[f"{PYTHON}/{python.file_name}"] = python.content
        contents |= own_requirements.contents(self._own, own, self._downloads, index, python)
        index = msgspec.structs.replace(
            index, carries=python.name if python else "", pythons=list(own)
        )
        listed = {name: BundleFile(c.sha256, c.size) for name, c in sorted(contents.items())}
        index = msgspec.structs.replace(index, files=listed)
        self._reporter.say(f"writing {output}")
        writing.write(output, index, contents)
        return index

    def _indexes(self, stack: Stack) -> Indexes:
        request = select.meant_for(stack, self._request)
        return Indexes(stack, request, self._public, self._access)


def index_of(lock: Lockfile) -> BundleIndex:
    """Without the files, and without envcheck itself."""
    return BundleIndex(
        envcheck=__version__,
        stack=lock.stack,
        release=lock.release,
        python=lock.python,
        architecture=lock.architecture,
        created_at=lock.created_at,
        pythons=[],
        files={},
    )


def _bytes(files: Sequence[LockedFile]) -> int:
    return sum(file.size or 0 for file in files)


def stack_text(choice: Choice) -> str:
    """The stack as TOML, as it was chosen from: of its releases the one, for this Python."""
    interpreter, release = choice.candidate.interpreter, choice.candidate.release
    if interpreter:
        release = msgspec.structs.replace(release, python=[interpreter.minor])
    stack = msgspec.structs.replace(choice.stack, releases=[release])
    filled: dict[str, Any] = _filled(msgspec.to_builtins(stack))
    return tomli_w.dumps(filled)


def _filled(value: Any) -> Any:
    """Without what says nothing: "", 0, [] and {}. What is false stays, and says so."""
    if isinstance(value, dict):
        return {key: _filled(one) for key, one in value.items() if one or one is False}
    return [_filled(one) for one in value] if isinstance(value, list) else value
