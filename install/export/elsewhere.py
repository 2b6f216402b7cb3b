"""Bundles for machines that are not this one: what they are like is told by what they have answered."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec

from .. import places, pylock, survey
from ..bundle import writing
from ..bundle.index import FILES, LOCK, STACK, BundleFile, BundleIndex
from ..bundle.writing import Content
from ..catalogue.model import Stack
from ..fit import select
from ..fit.models import Choice
from ..lockfile import Lockfile
from ..mode import Reporter
from ..network.session import Session
from ..pythons.interpreter import Interpreter
from ..request import Request
from ..store.fetch import Fetcher
from ..store.progress import Meter
from ..store.store import Store
from ..wheels.indexes import Indexes
from ..wheels.resolve import resolve
from . import make_bundle, own_requirements, own_wheel


class ElsewhereShop:
    """A context manager: the indexes, the connections and the store. Only from the main thread."""

    def __init__(self, request: Request, jobs: int, reporter: Reporter) -> None:
        self._request = request
        self._reporter = reporter
        self._open = ExitStack()
        self._session = self._open.enter_context(Session(request.allow_insecure))
        self._public = survey.public_for(request)
        self._store = Store(places.store())
        meter = Meter(reporter.fetching)
        self._fetcher = self._open.enter_context(Fetcher(self._store, self._session, jobs, meter))
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
        self._reporter.say(f"resolving {choice.stack.name} {choice.candidate.release.release}")
        interpreter = choice.candidate.interpreter
        assert interpreter is not None, "nothing can be got there"
        away = msgspec.structs.replace(choice.candidate, interpreter=_away(interpreter))
        chosen = msgspec.structs.replace(choice, candidate=away)
        return resolve(chosen, self._indexes(choice.stack))

    def write(
        self,
        output: Path,
        index: BundleIndex,
        runners: Mapping[str, Interpreter],
        lock: Lockfile | None = None,
        choice: Choice | None = None,
        *,
        carried: bool = True,
    ) -> BundleIndex:
        """Fetch what is missing, and write the bundle, a directory. Raises EnvcheckError.

        runners: what envcheck itself runs with there, by minor version. carried: with the lock's files, else
        without, for machines that fetch them themselves.
        """
        writing.check(output)
        minors = ", ".join(runners)
        self._reporter.say(f"resolving what envcheck itself needs, for Python {minors}")
        locks = {
            minor: own_requirements.locked(self._own, _away(one), self._request, self._session)
            for minor, one in runners.items()
        }
        files = lock.files if lock is not None and carried else []
        wanted = [*files, *own_requirements.files(locks)]
        missing = [file for file in wanted if not self._store.has(file.sha256)]
        make_bundle.check_room(output, self._store, wanted, missing)
        self._reporter.say(f"fetching {len(wanted)} files")
        self._fetcher.want_all(wanted)
        self._fetcher.wait()
        contents = {f"{FILES}/{file.name}": Content.stored(self._store, file) for file in files}
        if lock is not None and choice is not None:
            contents[LOCK] = Content.of(pylock.text(lock).encode())
            contents[STACK] = Content.of(make_bundle.stack_text(choice).encode())
        contents |= own_requirements.contents(self._own, locks, self._store, index.mode, output)
        listed = {name: BundleFile(c.sha256, c.size) for name, c in sorted(contents.items())}
        index = msgspec.structs.replace(index, pythons=list(locks), files=listed)
        writing.write(output, index, contents)
        return index

    def _indexes(self, stack: Stack) -> Indexes:
        request = select.meant_for(stack, self._request)
        return Indexes(stack, request, self._public, self._session)


def _away(interpreter: Interpreter) -> Interpreter:
    """By a path that is none of this machine's: uv is then told its version and platform."""
    return msgspec.structs.replace(interpreter, path=f"there:{interpreter.path}")
