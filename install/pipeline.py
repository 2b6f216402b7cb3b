"""`envcheck install`: request → fit → resolve → plan → transaction, the same sequence for both modes.

What differs between a virtual environment and a container is behind ``Mode``: ``wheels.mode`` and
``images.mode``. A bundle and a Dockerfile stop after the resolving, `--plan` stops after the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from ..exit_codes import Cannot, UsageError
from . import durable, places, pylock, validate
from .mode import UI, ChoiceT, Mode, PlanT, ResolvedT
from .plan.models import AnyPlan, ImagePlan, Plan, WheelPlan
from .request import InstallOptions, Request
from .signals import ending_raises
from .transaction import existing, recovery
from .transaction.layout import Root, Version
from .transaction.record import Installed

Result = Literal["installed", "planned", "already", "refused"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an installation; failures are raised."""

    result: Result
    plan: AnyPlan | None = None
    installed: Installed | None = None


def install(request: Request, options: InstallOptions, ui: UI) -> Outcome:
    """Carry out a request. Only from the main thread. Raises EnvcheckError."""
    places.check_home()
    there = None if options.upgrade else existing.look(request)
    if there is not None and options.until == "installed" and not options.fresh:
        return _already(there)
    with prepared(request):
        if request.mode == "container":
            from .images.mode import ImageMode

            return _carried_out(ImageMode(request, options, ui), request, options, ui)
        from .wheels.mode import WheelMode

        again = there if options.fresh else None
        lock = Version(Path(again.directory) / again.version).lock if again else None
        return _carried_out(WheelMode(request, options, ui, lock), request, options, ui)


def _carried_out(
    mode: Mode[ChoiceT, ResolvedT, PlanT], request: Request, options: InstallOptions, ui: UI
) -> Outcome:
    resolved = mode.resolve(mode.fit())
    plan = mode.plan(resolved)
    shown = _of_either_mode(plan)
    artifact = mode.artifact(resolved)
    if not (_is_there(plan, artifact.digest, request, options) or ui.agreed(shown)):
        return Outcome(result="refused", plan=shown)
    if options.until == "plan":
        return Outcome(result="planned", plan=shown)
    # Only now: a plan does without.
    from .transaction.execute import execute
    from .verify import verify

    installed = execute(
        plan,
        artifact,
        request,
        mode.builder(resolved, plan),
        partial(verify, mode.verify_options(resolved)),
        wait=options.wait,
        tell=ui.say,
        step=ui.step,
        fresh=options.fresh,
    )
    result: Result = "already" if installed.already else "installed"
    return Outcome(result=result, plan=shown, installed=_with_provided(installed))


@contextmanager
def prepared(request: Request) -> Iterator[None]:
    """Check the request; signals, and a cache that cannot be written, raise EnvcheckError."""
    places.check_home()
    validate.check(request)
    with ending_raises(), _cache_needed():
        yield


def _of_either_mode(plan: Plan) -> AnyPlan:
    assert isinstance(plan, WheelPlan | ImagePlan), "there is no other"
    return plan


def _is_there(plan: Plan, digest: str, request: Request, options: InstallOptions) -> bool:
    """Whether a version by this lock is installed, so that there is nothing to plan and to ask."""
    if options.fresh or options.until != "installed":
        return False
    return existing.in_root(Root(Path(plan.directory)), request, digest) is not None


def _already(there: Installed) -> Outcome:
    """It is the one installed last from here on: another may have been installed since."""
    notes = [*there.notes, *recovery.remember(Root(Path(there.directory)))]
    there = msgspec.structs.replace(there, notes=notes)
    return Outcome(result="already", installed=_with_provided(there))


def _with_provided(there: Installed) -> Installed:
    version = Version(Path(there.directory) / there.version)
    if not version.is_container:
        with suppress(UsageError):
            there = msgspec.structs.replace(there, provided=pylock.read(version.lock).provided)
    return there


@contextmanager
def _cache_needed() -> Iterator[None]:
    """Explain an OSError from the cache."""
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
