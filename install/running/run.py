"""`envcheck install`, put together: fit, resolve, lock, plan, and then the transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from ...exit_codes import Cannot, UsageError
from .. import durable, places, pylock
from ..catalogue.model import Stack
from ..engines.image_store import EngineImages
from ..lockfile import Lockfile
from ..plan.models import AnyPlan, StepName, WheelPlan
from ..request import Request
from ..signals import ending_raises
from ..transaction import current, existing
from ..transaction.layout import Root, Version
from ..transaction.record import Installed

if TYPE_CHECKING:
    from ..store.progress import Fetching
    from .prepare import Prepared

Result = Literal["installed", "planned", "already", "refused"]


class How(msgspec.Struct, frozen=True, kw_only=True):
    """How an installation is carried out, as far as it does not change what is installed."""

    until: Literal["plan", "installed"] = "installed"  # where it stops
    upgrade: bool = False
    fresh: bool = False  # a new version, as locked, although one is there
    keep_added: bool = False  # with what the user has added to the version in use
    wait: float | None = None  # seconds for another installation at the same place
    jobs: int = 8  # downloads at once


class Told(Protocol):
    """Shows progress, and asks."""

    def say(self, sentence: str) -> None:
        """What begins, or what happened, in a sentence."""

    def step(self, name: StepName) -> None:
        """The step of the plan that begins."""

    def fetching(self, state: Fetching) -> None:
        """Called from a thread of its own, several times a second."""

    def looking(self, running: list[str], done: int, total: int) -> None:
        """How far the doctor is with the new environment."""

    def agreed(self, plan: AnyPlan) -> bool:
        """Show the plan; False: the user declines."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What has come of it; what fails is raised."""

    result: Result
    plan: AnyPlan | None = None
    installed: Installed | None = None
    stack: Stack | None = None
    lock: Lockfile | None = None
    provided: dict[str, str] = {}  # what was given in a package's place: name → how


def install(request: Request, how: How, told: Told) -> Outcome:
    """Carry out a request. Only from the main thread. Raises EnvcheckError."""
    there = None if how.upgrade else existing.look(request, EngineImages())
    if there is not None and how.until == "installed" and not how.fresh:
        return Outcome(result="already", installed=_again(there), provided=_provided(there))
    with ending_raises(), _cache_needed(), ExitStack() as exits:
        if request.mode == "container":
            return _install_image(request, how, told, exits)
        from . import prepare

        prepared = prepare.prepare(
            request,
            how.jobs,
            told.say,
            told.fetching,
            exits,
            by_lock=_lock_of(there) if how.fresh and not request.offline else None,
            keep_added=how.keep_added,
        )
        stack, lock = prepared.choice.stack, prepared.lock
        plan = prepared.plan()
        wanted = _is_there(prepared, how) or told.agreed(plan)
        if how.until == "plan" or not wanted:
            result: Result = "refused" if not wanted else "planned"
            return Outcome(result=result, plan=plan, stack=stack, lock=lock)
        prepared.take_from_bundle(told.say)
        installed = _execute(prepared, plan, how, told)
    return Outcome(
        result="already" if installed.already else "installed",
        plan=plan,
        installed=installed,
        stack=stack,
        lock=lock,
        provided=lock.provided,
    )


def _is_there(prepared: Prepared, how: How) -> bool:
    """Whether a version by this lock is installed, so that there is nothing to plan and to ask."""
    if how.fresh or how.until != "installed":
        return False
    root, digest = prepared.root, pylock.digest(prepared.lock)
    request = prepared.request
    return any(look(root, request, digest) for look in (existing.in_root, existing.beside))


def _lock_of(there: Installed | None) -> Path | None:
    """The lock of the version that an equal request has made."""
    if there is None or there.record.mode == "container":
        return None
    return Version(Path(there.directory) / there.version).lock


def _install_image(request: Request, how: How, told: Told, exits: ExitStack) -> Outcome:
    from ..container import prepare

    prepared = prepare.prepare(request, how.jobs, told.say, told.fetching, exits)
    plan = prepared.plan()
    if not told.agreed(plan):
        return Outcome(result="refused", plan=plan)
    if how.until == "plan":
        return Outcome(result="planned", plan=plan)
    from ..container import carry  # only now: a plan does without what it imports

    installed = carry.carry_out(prepared, plan, how, told)
    return Outcome(
        result="already" if installed.already else "installed", plan=plan, installed=installed
    )


@contextmanager
def _cache_needed() -> Iterator[None]:
    """What cannot be kept in the cache ends the preparing: say so of an OSError from there."""
    try:
        yield
    except OSError as error:
        named, cache = str(error.filename or "?"), str(places.cache())
        if not (named.startswith(cache) or cache.startswith(named)):  # in it, or on the way to it
            raise
        raise Cannot(
            f"{error.filename}: cannot be written: {error.strerror}",
            hint=durable.advice(error) or "name another place for the cache in XDG_CACHE_HOME",
        ) from None


def _again(there: Installed) -> Installed:
    """It is the one installed last from here on: another may have been installed since."""
    if note := current.remember(Root(Path(there.directory))):
        return msgspec.structs.replace(there, notes=[*there.notes, note])
    return there


def _provided(there: Installed) -> dict[str, str]:
    version = Version(Path(there.directory) / there.version)
    if version.is_container:
        return {}
    with suppress(UsageError):
        return pylock.read(version.lock).provided
    return {}


def _execute(prepared: Prepared, plan: WheelPlan, how: How, told: Told) -> Installed:
    from ... import collection
    from ...collection import Kernels
    from ..transaction.execute import execute
    from ..verify import DoctorVerifier, unchanged
    from ..wheels.artifact import LockedPackages
    from ..wheels.builder import WheelBuilder

    stack, request = prepared.choice.stack, prepared.request
    builder = WheelBuilder(
        prepared.choice,
        prepared.lock,
        prepared.located,
        request,
        prepared.fetcher,
        prepared.meter,
        prepared.public,
        plan.installer,
        told.step,
        prepared.added,
    )
    verifier = DoctorVerifier(
        lambda directory: collection.collect(
            str(directory),
            kernels=Kernels(),
            progress=told.looking,
            seen=unchanged(prepared.machine.snapshot),
            environment=stack.environment,
        ),
        must_pass=stack.must_pass,
        allow_no_gpu=request.allow_no_gpu or not stack.gpu,
    )
    material = LockedPackages(prepared.lock)
    return execute(
        plan,
        material,
        request,
        builder,
        verifier,
        images=EngineImages(),
        wait=how.wait,
        tell=told.say,
        step=told.step,
        fresh=how.fresh,
    )
