"""From a request to a lock and a plan: everything that happens before anything is touched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...exit_codes import Cannot, UsageError
from .. import places, pylock, survey, validate
from ..bundle.reading import Bundle
from ..catalogue.model import Stack
from ..fit import select
from ..fit.disk_space import DiskSpace
from ..fit.models import Choice
from ..lockfile import Lockfile
from ..network.public_index import PublicIndex
from ..plan import planning, rooms
from ..plan.models import WheelPlan
from ..pythons.interpreter import Interpreter
from ..request import Request
from ..store import fetch_rate
from ..store.fetch_rate import Meter
from ..store.progress import Fetching
from ..store.store import Store
from ..survey import Machine
from ..transaction import guard, layout
from ..transaction.layout import Root
from ..wheels import added, checking, locate, toolchain, uv_cache
from ..wheels.added import Added, damage
from ..wheels.indexes import Indexes

if TYPE_CHECKING:
    from ..network.session import Session
    from ..store.fetch import Fetcher

Say = Callable[[str], None]


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """All that an installation, a plan, a Dockerfile or a bundle needs.

    located: the lock with the addresses that files are fetched from. public: the public index, without
    credentials.
    """

    request: Request
    choice: Choice
    machine: Machine
    lock: Lockfile
    located: Lockfile
    store: Store
    fetcher: Fetcher
    meter: Meter
    session: Session
    public: str
    remarks: list[str]
    added: Added = Added()
    bundle: Bundle | None = None

    @property
    def root(self) -> Root:
        return layout.root_of(self.request, self.choice.stack.name)

    def plan(self) -> WheelPlan:
        """Raises UsageError for a path that cannot be, or is somebody else's; Cannot for want of room."""
        root = self.root
        directory = str(root.path)
        version = layout.version_id(self.lock.release, self.lock.python, pylock.digest(self.lock))
        rooms.check_path(directory, version)
        guard.look(root)
        toolchain.check(self.lock, self.choice.stack)
        here = rooms.Surroundings(
            directory=directory,
            version=layout.free_id(root, version),
            installer=toolchain.installer(self.request, self.lock),
            environment=self._room(directory),
            store=self._room(str(places.store())),
            unpacked=self._room(str(places.uv_cache())),
            in_store={
                file.sha256: self.store.path(file.sha256).stat().st_size
                for file in self.lock.files
                if self.store.has(file.sha256)
            },
            in_unpacked=self._unpacked(),
            rate=fetch_rate.read(),
            remarks=[
                *self.remarks,
                *damage(root, pylock.digest(self.lock)),
                *self.added.notes,
            ],
            offline=self.bundle is not None,
        )
        return planning.plan(self.choice, self.located, here)

    def take_from_bundle(self, say: Say) -> None:
        """Verify the bundle's files and put them into the store. Raises UsageError for damage."""
        if self.bundle is not None:
            say(f"verifying the {len(self.lock.files)} files of the bundle")
            self.bundle.adopt(self.lock, self.store)

    def _unpacked(self) -> frozenset[str]:
        """Names of the files that uv's cache holds unpacked, as their versions tell."""
        there = uv_cache.packages()
        return frozenset(
            package.file.name
            for package in self.lock.packages
            if package.version.replace("-", "_") in there.get(package.name, ())
        )

    def _room(self, path: str) -> DiskSpace:
        return survey.room_for(path, self.machine.snapshot)


class _Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is chosen from: the request itself, or what a lock or bundle makes of it."""

    request: Request
    lock: Lockfile | None = None
    where: str = ""  # what errors call the lock
    load: Callable[[str], Stack] | None = None


def prepare(
    request: Request,
    jobs: int,
    say: Say,
    fetching: Callable[[Fetching], None],
    exits: ExitStack,
    *,
    by_lock: Path | None = None,
    keep_added: bool = False,
) -> Prepared:
    """Look, choose, resolve and lock. ``exits`` closes what is opened. Only from the main thread.

    by_lock: install what this lock says, although the request names none. keep_added: with what the user
    added to the version in use.
    """
    validate.check(request)
    bundle = _opened(request, exits)
    wish = _wish(request, bundle, by_lock)
    say("looking at this machine")
    collected = survey.collecting()
    # Which takes longer to import than all the rest: meanwhile the collector runs.
    from ..network.session import Session
    from ..store.fetch import Fetcher
    from ..wheels.resolve import resolve

    session = exits.enter_context(Session(request.allow_insecure))
    store = Store(places.store())
    meter = Meter(fetching)
    fetcher = exits.enter_context(Fetcher(store, session, jobs, meter))
    index_session = IndexSession(request, session)
    machine = survey.look(wish.request, collected=collected, known=index_session.begin)
    choice = select.choose(
        wish.request,
        machine.snapshot,
        machine.interpreters,
        machine.obtainable,
        index_session.answers,
        room=survey.room(request, machine.snapshot),
        load=wish.load,
    )
    if wish.lock is not None:
        _check_wish(wish, wish.lock, choice)
    if bundle is not None and wish.lock is not None:
        bundle.check(wish.lock)
        lock = located = wish.lock
        public = checking.public_of(choice.stack, lock)
    else:
        indexes = index_session.of(choice.stack)
        interpreter = choice.candidate.interpreter
        if wish.lock is not None:
            say("asking the indexes for what the lock names")
            lock, located = wish.lock, locate.located(wish.lock, interpreter, indexes)
        else:
            release = choice.candidate.release.release
            say(f"resolving {choice.stack.name} {release}")
            lock = located = resolve(choice, interpreter, indexes)
        assert machine.public is not None, "only a bundle does without"
        public = session.public(machine.public.url)
    root = layout.root_of(request, choice.stack.name)
    known = index_session.of(choice.stack) if bundle is None else None
    beside = added.look(root, lock, choice, known, keep=keep_added)
    return Prepared(
        request=request,
        choice=choice,
        machine=machine,
        lock=lock,
        located=msgspec.structs.replace(located, packages=[*located.packages, *beside.packages]),
        added=beside,
        store=store,
        fetcher=fetcher,
        meter=meter,
        session=session,
        public=public,
        remarks=index_session.remarks(choice.stack),
        bundle=bundle,
    )


class IndexSession:
    """The indexes of each stack that is asked about, made once."""

    def __init__(self, request: Request, session: Session) -> None:
        self._request = request
        self._session = session
        self._public: PublicIndex | None = None
        self._made: dict[str, Indexes] = {}

    def begin(self, public: PublicIndex) -> None:
        """The public index is known."""
        self._public = public

    def of(self, stack: Stack) -> Indexes:
        assert self._public is not None, "only a bundle does without"
        if stack.name not in self._made:
            request = validate.meant_for(stack, self._request)
            self._made[stack.name] = Indexes(stack, request, self._public, self._session)
        return self._made[stack.name]

    def answers(self, stack: Stack) -> str:
        return "" if self._public is None else self.of(stack).answers()

    def remarks(self, stack: Stack) -> list[str]:
        if self._public is None:
            return []
        return [*self._public.remarks, *self.of(stack).remarks]


def _opened(request: Request, exits: ExitStack) -> Bundle | None:
    if not request.offline:
        return None
    return exits.enter_context(Bundle(request.offline))


def _wish(request: Request, bundle: Bundle | None, by_lock: Path | None) -> _Wish:
    """Raises UsageError for a lock that is none, or is of another stack than the one named."""
    if bundle is not None:
        from ..catalogue.schema import read

        where = f"{request.offline}: pylock.toml"
        lock = pylock.parse(bundle.lock_text, where)
        stack = read(bundle.stack_text, f"{request.offline}: stack.toml")
        return _Wish(
            request=_by_lock(request, lock), lock=lock, where=where, load=lambda name: stack
        )
    if request.lock or by_lock:
        path = by_lock or Path(request.lock)
        lock = pylock.read(path)
        return _Wish(request=_by_lock(request, lock), lock=lock, where=str(path))
    return _Wish(request=request)


def _by_lock(request: Request, lock: Lockfile) -> Request:
    return msgspec.structs.replace(
        request,
        stack=request.stack or lock.stack,
        release=lock.release,
        python=request.python or lock.python,
    )


def _check_wish(wish: _Wish, lock: Lockfile, choice: Choice) -> None:
    if choice.stack.name != lock.stack:
        raise UsageError(f"{wish.where} is a lock of {lock.stack}, and not of {choice.stack.name}")
    interpreter: Interpreter | None = choice.candidate.interpreter
    if interpreter is not None:
        checking.check_fits(lock, interpreter, wish.where)
    elif choice.candidate.python_to_get != lock.python:
        raise Cannot(
            f"{wish.where} is for Python {lock.python}, and this would be for Python"
            f" {choice.candidate.python_to_get}",
            f"--python {lock.python}",
        )
