"""Bundles for machines that are not this one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec

from .. import pylock, survey
from ..bundle import writing
from ..bundle.index import FILES, LOCK, PYTHON, STACK, BundleIndex
from ..bundle.writing import Content
from ..catalogue.model import Stack
from ..downloads import Downloads
from ..fit import select
from ..fit.models import Choice
from ..lockfile import Lockfile
from ..mode import Reporter
from ..network.session import Session
from ..progress import Meter
from ..pythons.interpreter import Interpreter
from ..reports.amounts import size
from ..request import Request
from ..wheels.indexes import Indexes
from ..wheels.resolve import resolve
from . import bundle_parts, destinations, own_requirements, own_wheel
from .own_python import OwnPython


class ElsewhereShop:
    """A context manager: the indexes, the connections and the downloads. Only from the main thread."""

    def __init__(self, request: Request, jobs: int, reporter: Reporter) -> None:
        self._request = request
        self._reporter = reporter
        self._open = ExitStack()
        self._session = self._open.enter_context(Session(request.allow_insecure))
        self._public = survey.public_for(request)
        self._downloads = Downloads(self._session, jobs)
        self._own = own_wheel.build()

    def __enter__(self) -> ElsewhereShop:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

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
        lock: Lockfile | None = None,
        stack_text: str = "",
        *,
        carried: bool = True,
        python: OwnPython | None = None,
    ) -> BundleIndex:
        """Fetch what is missing, and write the bundle. Raises EnvcheckError.

        runners: what envcheck itself runs with there, by minor version. carried: with the lock's files, else
        without, for machines that fetch them themselves. python: an interpreter that goes along.
        """
        writing.check(output)
        own = own_requirements.locks(
            self._own, runners, self._request, self._session, self._reporter
        )
        files = lock.files if lock and carried else []
        wanted = [*files, *own_requirements.files(own)]
        missing = [file for file in wanted if not self._downloads.has(file)]
        bundle_parts.check_room(output, wanted, missing)
        total = size(sum(file.size or 0 for file in wanted))
        self._reporter.say(f"fetching {len(wanted)} files, {total}")
        self._downloads.fetch(wanted, Meter(self._reporter.progress))
        contents = {f"{FILES}/{file.name}": Content.stored(self._downloads, file) for file in files}
        if lock is not None:
            contents[LOCK] = Content.of(pylock.text(lock).encode())
        if stack_text:
            contents[STACK] = Content.of(stack_text.encode())
        if python is not None:
            contents[f"{PYTHON}/{python.file_name}"] = python.content
        contents |= own_requirements.contents(self._own, own, self._downloads, index, python)
        index = msgspec.structs.replace(
            index, carries=python.name if python else "", pythons=list(own)
        )
        return bundle_parts.write(output, index, contents, self._reporter)

    def _indexes(self, stack: Stack) -> Indexes:
        request = select.meant_for(stack, self._request)
        return Indexes(stack, request, self._public, self._session)
