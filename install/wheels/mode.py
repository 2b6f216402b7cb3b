"""The wheel mode's stages: a virtual environment from a stack's wheels, a lock, or a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ... import collection
from ...collection import Collected, Kernels
from .. import places, pylock, survey, validate
from ..catalogue.model import Stack
from ..downloads import Downloads
from ..fit import select
from ..fit.disk_space import space_at
from ..fit.models import Choice
from ..lockfile import Lockfile
from ..network import addresses
from ..network.access import Access
from ..plan import wheel_planning
from ..plan.models import WheelPlan
from ..request import InstallOptions, Request
from ..survey import VerifyOptions
from ..transaction import guard, layout
from ..transaction.interfaces import Artifact
from . import given_lock, sdists, uv, uv_cache
from .builder import ResolvedWheels, WheelBuilder, artifact
from .indexes import Indexes
from .installing import FileSource
from .pip_conf import public_of

if TYPE_CHECKING:
    from ..bundle.reading import Bundle
    from ..mode import Reporter


class WheelMode:
    """Holds what the stages share: the look at the machine, the connections, the downloads."""

    def __init__(
        self,
        request: Request,
        options: InstallOptions,
        reporter: Reporter,
        by_lock: Path | None = None,
    ) -> None:
        """by_lock: install what this lock says, although the request names none."""
        uv.program()  # without it, nothing else has to be looked at
        self.request = request
        self._options = options
        self._reporter = reporter
        self._bundle: Bundle | None = None
        self._lock: Lockfile | None = None
        self._where = str(by_lock or request.lock)  # what errors call the lock
        if request.offline:
            from ..bundle.reading import Bundle

            self._bundle = Bundle(request.offline)
            self._lock, self._where = self._bundle.lock(), f"{request.offline}: its lock"
        elif by_lock or request.lock:
            self._lock = pylock.read(by_lock or Path(request.lock))
        reporter.say("looking at this machine")
        collected = survey.collecting()
        self.access = Access(request.allow_insecure)
        self._files = Downloads(self.access)
        self.machine = survey.look(self._by_lock(), collected)
        self._made: dict[str, Indexes] = {}

    def _by_lock(self) -> Request:
        """The request, as the lock that is given makes it; whether a bundle's fits, the Pythons that are here
        decide."""
        request, lock = self.request, self._lock
        if lock is None:
            return request
        return msgspec.structs.replace(
            request,
            stack=lock.stack if self._bundle else request.stack or lock.stack,
            release=lock.release,
            python=request.python or ("" if self._bundle else lock.python),
        )

    def _indexes(self, stack: Stack) -> Indexes | None:
        """The stack's, made once; None where no index is asked."""
        if self.machine.public is None:
            return None
        if stack.name not in self._made:
            request = select.meant_for(stack, self.request)
            self._made[stack.name] = Indexes(stack, request, self.machine.public, self.access)
        return self._made[stack.name]

    def fit(self) -> Choice:
        machine, load = self.machine, None
        if self._bundle is not None and self._lock is not None:
            bundled = _stack_of(self._bundle, self._lock.python)

            def load(name: str) -> Stack:
                return bundled

        def answers(stack: Stack) -> str:
            indexes = self._indexes(stack)
            return "" if indexes is None else indexes.answers()

        choice = select.choose(
            self._by_lock(),
            machine.snapshot,
            machine.interpreters,
            machine.obtainable,
            answers,
            space=space_at(self.request.path or places.environments()),
            load=load,
        )
        if self._lock is not None:
            given_lock.check(self._lock, choice, self._where)
        return choice

    def resolve(self, choice: Choice) -> ResolvedWheels:
        indexes, lock, public = self._indexes(choice.stack), self._lock, self.machine.public
        if lock is None:
            assert indexes is not None, "only a bundle does without"
            from .resolve import resolve

            self._reporter.say(f"resolving {choice.stack.name} {choice.candidate.release.release}")
            lock = resolve(choice, indexes)
        if self._bundle is not None:
            self._bundle.check(lock)
        else:
            for file in lock.files:
                self.access.permit(file.url)
        return ResolvedWheels(
            choice=choice,
            lock=lock,
            public=addresses.public(public.url) if public else public_of(choice.stack, lock),
        )

    def plan(self, resolved: ResolvedWheels) -> WheelPlan:
        lock, choice = resolved.lock, resolved.choice
        root = layout.root_of(self.request, choice.stack.name)
        directory = str(root.path)
        version = layout.version_id(lock.release, f"py{lock.python}", pylock.digest(lock))
        validate.check_path(directory, version, self.request)
        guard.look(root)
        sdists.check_programs(lock, choice.stack)
        indexes = self._indexes(choice.stack)
        here = wheel_planning.WheelPlanInputs(
            directory=directory,
            version=layout.free_id(root, version),
            installer=uv.described(),
            environment=space_at(directory),
            cache=space_at(places.uv_cache()),
            cached=self._cached(lock),
            remarks=indexes.remarks if indexes else [],
            offline=self._bundle is not None,
        )
        return wheel_planning.plan(choice, lock, here)

    def artifact(self, resolved: ResolvedWheels) -> Artifact:
        return artifact(resolved.lock)

    def builder(self, resolved: ResolvedWheels, plan: WheelPlan) -> WheelBuilder:
        """Raises UsageError for a damaged bundle."""
        if self._bundle is not None:
            self._reporter.say(f"verifying the {len(resolved.lock.files)} files of the bundle")
            self._bundle.verify(resolved.lock)
        source = FileSource(self._files, self._indexes(resolved.choice.stack), self._bundle)
        return WheelBuilder(resolved, plan, source, self._reporter)

    def _cached(self, lock: Lockfile) -> frozenset[str]:
        """The sha256 of files that are not fetched: uv has unpacked their version, or they are downloaded."""
        unpacked = uv_cache.packages()
        return frozenset(
            package.file.sha256
            for package in [*lock.packages, *lock.building]
            if package.version.replace("-", "_").lower() in unpacked.get(package.name, ())
            or self._files.has(package.file)
        )

    def verify_options(self, resolved: ResolvedWheels) -> VerifyOptions:
        stack = resolved.choice.stack

        def look(directory: Path) -> Collected:
            return collection.collect(
                str(directory),
                kernels=Kernels(),
                deadline=self._options.deadline,
                progress=self._reporter.looking,
                seen=survey.unchanged(self.machine.snapshot),
                environment=stack.environment,
            )

        without_gpu = self.request.allow_no_gpu or not stack.gpu
        return VerifyOptions(look, stack.must_pass, without_gpu)


def _stack_of(bundle: Bundle, minor: str) -> Stack:
    """The stack of a bundle, whose releases are for the Python that the bundle has a lock for."""
    from ..catalogue.schema import read

    stack = read(bundle.stack_text, f"{bundle.place}: stack.toml")
    releases = [msgspec.structs.replace(release, python=[minor]) for release in stack.releases]
    return msgspec.structs.replace(stack, releases=releases)
