"""The wheel mode's stages: a virtual environment from a stack's wheels, a lock, or a bundle."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ... import collection
from ...collection import Collected, Kernels
from ...exit_codes import Cannot, UsageError
from .. import places, pylock, survey, validate
from ..catalogue.model import Stack
from ..fit import select
from ..fit.disk_space import space_at
from ..fit.models import Choice
from ..lockfile import Downloads, Lockfile
from ..network.public_index import PublicIndex
from ..plan import wheel_planning
from ..plan.models import WheelPlan
from ..pythons.interpreter import Interpreter
from ..request import InstallOptions, Request
from ..store import progress
from ..store.progress import Meter
from ..store.store import Store
from ..survey import VerifyOptions
from ..transaction import guard, layout
from ..transaction.interfaces import Artifact
from . import added, checking, installing, locate, sdists, uv_cache
from .added import damage
from .builder import ResolvedWheels, WheelBuilder, artifact
from .indexes import Indexes

if TYPE_CHECKING:
    from ..bundle.reading import Bundle
    from ..mode import Reporter
    from ..network.session import Session


class ResolvedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is chosen from: the request itself, or what a lock or bundle makes of it."""

    request: Request
    lock: Lockfile | None = None
    where: str = ""  # what errors call the lock
    load: Callable[[str], Stack] | None = None


class WheelMode:
    """Holds what the stages share: the look at the machine, the connections, the store."""

    def __init__(
        self,
        request: Request,
        options: InstallOptions,
        reporter: Reporter,
        exits: ExitStack,
        by_lock: Path | None = None,
    ) -> None:
        """exits: closes what is opened. by_lock: install what this lock says, although the request names
        none."""
        self.request = request
        self._options = options
        self._reporter = reporter
        self._bundle: Bundle | None = None
        if request.offline:
            from ..bundle.reading import Bundle

            self._bundle = exits.enter_context(Bundle(request.offline))
        self._asked = _resolved_request(request, self._bundle, by_lock)
        reporter.say("looking at this machine")
        collected = survey.collecting()
        # Which takes longer to import than all the rest: meanwhile the collector runs.
        from ..network.session import Session
        from ..store.fetch import Fetcher

        self.session = exits.enter_context(Session(request.allow_insecure))
        self.store = Store(places.store())
        self._meter = Meter(reporter.fetching)
        self.fetcher = exits.enter_context(
            Fetcher(self.store, self.session, options.jobs, self._meter)
        )
        self.machine = survey.look(self._asked.request, collected=collected)
        self._indexes = IndexSession(request, self.session, self.machine.public)

    def fit(self) -> Choice:
        asked, machine = self._asked, self.machine
        choice = select.choose(
            asked.request,
            machine.snapshot,
            machine.interpreters,
            machine.obtainable,
            self._indexes.answers,
            space=space_at(self.request.path or places.environments(), machine.snapshot),
            load=asked.load,
        )
        if asked.lock is not None:
            _check_lock(asked.lock, asked.where, choice)
        return choice

    def resolve(self, choice: Choice) -> ResolvedWheels:
        lock, located, public = self._locked(choice)
        root = layout.root_of(self.request, choice.stack.name)
        indexes = self._indexes.of(choice.stack) if self._bundle is None else None
        keep = self._options.keep_added
        beside, notes = added.look(root, lock, choice, indexes, keep=keep)
        return ResolvedWheels(
            choice=choice,
            lock=lock,
            downloads=Downloads.of(located, beside),
            added=beside,
            notes=notes,
            public=public,
        )

    def _locked(self, choice: Choice) -> tuple[Lockfile, Lockfile, str]:
        """(the lock, the same with the addresses of today, the public index without credentials)."""
        lock, bundle = self._asked.lock, self._bundle
        if bundle is not None and lock is not None:
            bundle.check(lock)
            return lock, lock, checking.public_of(choice.stack, lock)
        indexes = self._indexes.of(choice.stack)
        assert self.machine.public is not None, "only a bundle does without"
        public = self.session.public(self.machine.public.url)
        if lock is not None:
            self._reporter.say("asking the indexes for what the lock names")
            return lock, locate.located(lock, choice.candidate.interpreter, indexes), public
        from .resolve import resolve

        self._reporter.say(f"resolving {choice.stack.name} {choice.candidate.release.release}")
        lock = resolve(choice, indexes)
        return lock, lock, public

    def plan(self, resolved: ResolvedWheels) -> WheelPlan:
        lock, choice = resolved.lock, resolved.choice
        digest = pylock.digest(lock)
        root = layout.root_of(self.request, choice.stack.name)
        directory = str(root.path)
        version = layout.version_id(lock.release, lock.python, digest)
        validate.check_path(directory, version, self.request)
        guard.look(root)
        sdists.check_programs(lock, choice.stack)
        remarks = self._indexes.remarks(choice.stack)
        snapshot = self.machine.snapshot
        here = wheel_planning.WheelPlanInputs(
            directory=directory,
            version=layout.free_id(root, version),
            installer=installing.installer(self.request, lock),
            environment=space_at(directory, snapshot),
            store=space_at(places.store(), snapshot),
            unpacked=space_at(places.uv_cache(), snapshot),
            in_store={
                file.sha256: self.store.path(file.sha256).stat().st_size
                for file in lock.files
                if self.store.has(file.sha256)
            },
            in_unpacked=_unpacked(lock),
            rate=progress.last_rate(),
            remarks=[*remarks, *damage(root, digest), *resolved.notes],
            offline=self._bundle is not None,
        )
        return wheel_planning.plan(choice, resolved.downloads, here)

    def artifact(self, resolved: ResolvedWheels) -> Artifact:
        return artifact(resolved.lock)

    def builder(self, resolved: ResolvedWheels, plan: WheelPlan) -> WheelBuilder:
        """Raises UsageError for a damaged bundle."""
        if self._bundle is not None:
            self._reporter.say(f"verifying the {len(resolved.lock.files)} files of the bundle")
            self._bundle.adopt(resolved.lock, self.store)
        return WheelBuilder(
            resolved, self.request, plan.installer, self.fetcher, self._meter, self._reporter.step
        )

    def verify_options(self, resolved: ResolvedWheels) -> VerifyOptions:
        stack = resolved.choice.stack

        def look(directory: Path) -> Collected:
            return collection.collect(
                str(directory),
                kernels=Kernels(),
                progress=self._reporter.looking,
                seen=survey.unchanged(self.machine.snapshot),
                environment=stack.environment,
            )

        without_gpu = self.request.allow_no_gpu or not stack.gpu
        return VerifyOptions(look, stack.must_pass, without_gpu)


def _unpacked(lock: Lockfile) -> frozenset[str]:
    """Names of the files that uv's cache holds unpacked, as their versions tell."""
    there = uv_cache.packages()
    return frozenset(
        package.file.name
        for package in lock.packages
        if package.version.replace("-", "_") in there.get(package.name, ())
    )


class IndexSession:
    """The indexes of each stack that is asked about, made once. public: None where no index is asked."""

    def __init__(self, request: Request, session: Session, public: PublicIndex | None) -> None:
        self._request = request
        self._session = session
        self._public = public
        self._made: dict[str, Indexes] = {}

    def of(self, stack: Stack) -> Indexes:
        assert self._public is not None, "only a bundle does without"
        if stack.name not in self._made:
            request = select.meant_for(stack, self._request)
            self._made[stack.name] = Indexes(stack, request, self._public, self._session)
        return self._made[stack.name]

    def answers(self, stack: Stack) -> str:
        return "" if self._public is None else self.of(stack).answers()

    def remarks(self, stack: Stack) -> list[str]:
        if self._public is None:
            return []
        return [*self._public.remarks, *self.of(stack).remarks]


def _resolved_request(
    request: Request, bundle: Bundle | None, by_lock: Path | None
) -> ResolvedRequest:
    """Raises UsageError for a lock that is none, or is of another stack than the one named."""
    if bundle is not None:
        from ..catalogue.schema import read

        where = f"{request.offline}: pylock.toml"
        lock = pylock.parse(bundle.lock_text, where)
        stack = read(bundle.stack_text, f"{request.offline}: stack.toml")
        return ResolvedRequest(
            request=_by_lock(request, lock), lock=lock, where=where, load=lambda name: stack
        )
    if request.lock or by_lock:
        path = by_lock or Path(request.lock)
        lock = pylock.read(path)
        return ResolvedRequest(request=_by_lock(request, lock), lock=lock, where=str(path))
    return ResolvedRequest(request=request)


def _by_lock(request: Request, lock: Lockfile) -> Request:
    return msgspec.structs.replace(
        request,
        stack=request.stack or lock.stack,
        release=lock.release,
        python=request.python or lock.python,
    )


def _check_lock(lock: Lockfile, where: str, choice: Choice) -> None:
    if choice.stack.name != lock.stack:
        raise UsageError(f"{where} is a lock of {lock.stack}, and not of {choice.stack.name}")
    interpreter: Interpreter | None = choice.candidate.interpreter
    if interpreter is not None:
        checking.check_fits(lock, interpreter, where)
    elif choice.candidate.python_to_get != lock.python:
        raise Cannot(
            f"{where} is for Python {lock.python}, and this would be for Python"
            f" {choice.candidate.python_to_get}",
            f"--python {lock.python}",
        )
