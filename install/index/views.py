"""What the loopback index shows: everything that the policy lets through, or a lock's files alone."""

from __future__ import annotations

import hashlib
import platform
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO, Protocol

import msgspec
from packaging.utils import canonicalize_name

from ...exit_codes import CouldNotLook, EnvcheckError
from ..catalogue.model import PUBLIC, Stack
from ..lockfile import LockedFile, Lockfile
from . import learning, policy
from . import metadata as wheel_metadata
from .routes import Routes
from .simple import HEADERS, ProjectFile, parse, parse_version

if TYPE_CHECKING:
    from ..network.session import Session
    from ..store.fetch import Fetcher
    from ..store.store import Store
    from ..store.transfer import Transfer

# Questions to the indexes. A new connection costs more than to wait for one, and an index that serves few
# at once (seen: 24, of which each idle one is kept for 5 s) lets all beyond them wait.
AT_ONCE = 8


class View(Protocol):
    """What a server asks, from many threads; an answer of None is "not there".

    A file's key is its sha256, or what ``key`` makes of its address where the index gives none.
    """

    def project(self, name: str) -> list[ProjectFile] | None: ...
    def metadata(self, key: str) -> bytes | None: ...
    def file(self, key: str) -> Transfer | None: ...


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """One file as a lock wants it. ``index`` is the URL of its index, without credentials."""

    file: LockedFile
    index: str
    learnt: bool  # the index gave no sha256: the file was fetched to reckon it


def key(file: ProjectFile) -> str:
    """The name of a file in the loopback index's URLs."""
    return file.sha256 or f"url-{hashlib.sha256(file.url.encode()).hexdigest()}"


class ClosedIndex:
    """A lock's files, and nothing else in the world."""

    def __init__(self, lock: Lockfile, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._files = {file.sha256: file for file in lock.files}
        self._projects: dict[str, list[ProjectFile]] = {}
        for package in [*lock.packages, *lock.building]:
            shown = ProjectFile(
                filename=package.file.name,
                url=package.file.url,
                sha256=package.file.sha256,
                size=package.file.size,
                version=parse_version(package.version),
            )
            shelf = self._projects.setdefault(canonicalize_name(package.name), [])
            if shown not in shelf:
                shelf.append(shown)

    def project(self, name: str) -> list[ProjectFile] | None:
        return self._projects.get(name)

    def metadata(self, key: str) -> bytes | None:
        """None: who installs a lock resolves nothing, and finds what it wants in the wheel."""
        return None

    def file(self, key: str) -> Transfer | None:
        file = self._files.get(key)
        return None if file is None else self._fetcher.want(file, first=True)


class _Project:
    """One project of the run: asked for once, whoever asks."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = False
        self.wanted = False  # and not only asked for early
        self.judged: policy.Accepted | None = None
        self.error: EnvcheckError | None = None
        self.index = ""


class OpenIndex:
    """The stack's indexes under the policy, for the resolver. What it asks, it asks once a run."""

    def __init__(
        self,
        routes: Routes,
        session: Session,
        store: Store,
        stack: Stack,
        fetcher: Fetcher,
        architecture: str = "",
    ) -> None:
        """architecture: of the wheels to show; "" for this machine's."""
        self._routes = routes
        self._session = session
        self._store = store
        self._stack = stack
        self._fetcher = fetcher
        self._architecture = architecture or platform.machine()
        self._lock = threading.Lock()
        # Pages of megabytes, fifty at once, are read one after the other: it is no slower in one process,
        # and takes less memory.
        self._reading = threading.Lock()
        self._asking = threading.BoundedSemaphore(AT_ONCE)
        self._projects: dict[str, _Project] = {}
        self._files: dict[str, tuple[ProjectFile, str]] = {}  # with the index's URL
        self._sizes: dict[str, int] = {}  # that came to light with a wheel's metadata
        self._learnt: dict[str, ProjectFile] = {}
        self._learning = threading.Lock()

    @property
    def wanted(self) -> list[str]:
        """The projects that the resolver asked for and that are there, by name."""
        with self._lock:
            asked = dict(self._projects)
        return sorted(name for name, one in asked.items() if one.wanted and one.judged)

    def is_public(self, name: str) -> bool:
        """Whether a project comes from the public index."""
        return self._routes.of(name).index_name == PUBLIC

    @property
    def refusals(self) -> dict[str, list[policy.Refused]]:
        """What was kept from the resolver, by project."""
        with self._lock:
            asked = dict(self._projects)
        return {n: p.judged.refused for n, p in asked.items() if p.judged and p.judged.refused}

    def explain(self, name: str) -> str:
        """Why the resolver found no file of a project that would do; "" where nothing was kept from it.

        For a project that was asked for; it asks for nothing.
        """
        name = canonicalize_name(name)
        project = self._projects.get(name)
        if project is None or not project.asked or project.error is not None:
            return ""
        return policy.explain(name, self._routes.of(name), project.index, project.judged)

    def project(self, name: str) -> list[ProjectFile] | None:
        """The files that may be taken; None for a project that its index does not have."""
        project = self._asked_for(canonicalize_name(name))
        project.wanted = True
        if project.error is not None:
            raise project.error
        return project.judged.files if project.judged else None

    def ask_early(self, name: str) -> None:
        """Have a project's page here before somebody wants it, who then gets its error too."""
        self._asked_for(canonicalize_name(name))

    def metadata(self, key: str) -> bytes | None:
        known = self._files.get(key)
        if known is None or known[0].kind != "wheel":
            return None
        with self._asking:
            return wheel_metadata.metadata(
                self._session,
                self._store,
                self._learnt.get(key, known[0]),
                whole=lambda: self._whole(key),
                sized=lambda size: self._sizes.update({key: size}),
            )

    def file(self, key: str) -> Transfer | None:
        if key not in self._files:
            return None
        file = self._hashed(key)
        return self._fetcher.want(_locked(file, file.url), first=True)

    def pin(self, keys: Iterable[str]) -> dict[str, Pinned]:
        """The files that the resolver chose, ready for the lock; KeyError for one that was never shown.

        Sizes that the index does not say are asked for, and files without sha256 are fetched once.
        """
        wanted = list(dict.fromkeys(keys))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return dict(zip(wanted, pool.map(self._pin, wanted), strict=True))

    def _asked_for(self, name: str) -> _Project:
        with self._lock:
            project = self._projects.setdefault(name, _Project())
        with project.lock:
            if not project.asked:
                try:
                    self._ask(name, project)
                except EnvcheckError as error:
                    project.error = error
                project.asked = True
        return project

    def _pin(self, key: str) -> Pinned:
        index = self._files[key][1]
        file = self._hashed(key)
        if file.size is None:
            size = self._sizes.get(key) or wheel_metadata.kept_size(self._store, file)
            if size is None:
                size = self._size(file)
                if size is not None:
                    wheel_metadata.keep_size(self._store, file, size)
            file = msgspec.structs.replace(file, size=size)
        locked = _locked(file, self._session.public(file.url))
        return Pinned(file=locked, index=index, learnt=file.learnt)

    def _ask(self, name: str, project: _Project) -> None:
        route = self._routes.of(name)
        base = self._routes.base(route, self._session)
        project.index = self._session.public(base)
        try:
            files = self._page(f"{base}{name}/")
        except CouldNotLook as error:
            raise self._routes.failed(route, error) from None
        if files is None:
            return
        judged = policy.accept(
            files,
            name=name,
            route=route,
            stack=self._stack,
            architecture=self._architecture,
        )
        shown = [self._shown(file) for file in judged.files]
        project.judged = policy.Accepted(files=shown, refused=judged.refused)
        with self._lock:
            self._files |= {
                key(file): (original, project.index)
                for file, original in zip(shown, judged.files, strict=True)
            }

    def _page(self, url: str) -> list[ProjectFile] | None:
        try:
            with self._asking, self._session.get(url, headers=HEADERS) as response:
                body, kind = response.content, response.headers.get("Content-Type", "")
        except CouldNotLook as error:
            if getattr(error, "status", None) == 404:
                return None
            raise
        with self._reading:
            return parse(body, kind, response.url)

    def _shown(self, file: ProjectFile) -> ProjectFile:
        """Every wheel has its metadata beside it here, wherever it has to be taken from."""
        if file.kind == "wheel" and not file.metadata:
            return msgspec.structs.replace(file, metadata="true")
        return file

    def _hashed(self, key: str) -> ProjectFile:
        file = self._files[key][0]
        if file.sha256:
            return file
        with self._learning:  # one after the other: it is rare, and they are large
            if key not in self._learnt:
                self._learnt[key] = learning.learn(self._session, self._store, file)
            return self._learnt[key]

    def _whole(self, key: str) -> BinaryIO:
        file = self._hashed(key)
        transfer = self._fetcher.want(_locked(file, file.url), first=True)
        while not transfer.complete:
            transfer.wait_beyond(transfer.available(), 60.0)
        return self._store.open(file.sha256)

    def _size(self, file: ProjectFile) -> int | None:
        """Bytes, by the store or by a HEAD request; None where neither says."""
        if self._store.has(file.sha256):
            return self._store.path(file.sha256).stat().st_size
        try:
            with self._session.head(file.url) as response:
                length = response.headers.get("Content-Length", "")
        except CouldNotLook:
            return None
        return int(length) if length.isdigit() else None


def _locked(file: ProjectFile, url: str) -> LockedFile:
    return LockedFile(name=file.filename, url=url, sha256=file.sha256, size=file.size)
