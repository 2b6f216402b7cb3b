"""Which index a package comes from: exactly one, whatever others hold under its name."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from packaging.utils import canonicalize_name

from ...exit_codes import CouldNotLook, UsageError
from ..catalogue.model import PUBLIC, Stack
from ..network.addresses import QUOTED, is_index, typed
from ..request import Request
from .simple import HEADERS, parse

if TYPE_CHECKING:
    from ..network.public_index import PublicIndex
    from ..network.session import Session

# For each of several addresses, in seconds without a byte; the only one is waited for as for any page.
_HURRIED: dict[str, Any] = {"timeout": 10.0, "attempts": 2}
_PATIENT: dict[str, Any] = {}


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where a package comes from. ``urls`` are alternatives; they may hold credentials."""

    index_name: str
    urls: list[str]


class Routes:
    """The way to every package of one stack.

    Raises UsageError for an index in the request that the stack does not know or that is no URL.
    """

    def __init__(self, stack: Stack, request: Request, public: PublicIndex) -> None:
        self.stack = stack
        asked = _asked(stack, request.indexes)
        self._indexes = [
            msgspec.structs.replace(index, urls=asked.get(index.name, index.urls))
            for index in stack.indexes
        ]
        self._public = asked.get(PUBLIC) or [public.url]
        self._settled: dict[str, str] = {}
        self._locks = {
            name: threading.Lock() for name in [PUBLIC, *(i.name for i in self._indexes)]
        }
        # What the user should know: which of several addresses was taken, and why not an earlier one.
        self.said: list[str] = _overheard(request.indexes)

    def of(self, name: str) -> Route:
        """A package's one index: the first that claims its normalised name, else the public one."""
        normalized = canonicalize_name(name)
        for index in self._indexes:
            if index.claims(normalized):
                return Route(index_name=index.name, urls=index.urls)
        return Route(index_name=PUBLIC, urls=self._public)

    def base(self, route: Route, session: Session) -> str:
        """The address that serves this route for the whole run, ending in "/".

        Of several, the first that answers. The one that the stack's distribution comes from is asked in any
        case: it may be a mirror that the user has mistyped, and the resolver would only say that there are no
        versions. Raises CouldNotLook with what each said where none answers.
        """
        with self._locks[route.index_name]:
            if route.index_name not in self._settled:
                for url in route.urls:
                    session.learn(url, route.index_name)
                lone = len(route.urls) == 1 and not self._decides(route)
                found = route.urls[0] if lone else self._first(route, session)
                self._settled[route.index_name] = found
            return self._settled[route.index_name].rstrip("/") + "/"

    def answers(self, session: Session) -> str:
        """Whether the stack's own indexes answer: "", or the sentence with what each of them said."""
        for index in self._indexes:
            route = Route(index_name=index.name, urls=index.urls)
            with self._locks[index.name]:
                if index.name in self._settled:
                    continue
                for url in index.urls:
                    session.learn(url, index.name)
                try:
                    self._settled[index.name] = self._first(route, session)
                except CouldNotLook as error:
                    return str(error)
        return ""

    def failed(self, route: Route, error: CouldNotLook) -> CouldNotLook:
        """An own index that fails in the middle of it, with what can be had instead."""
        if route.index_name == PUBLIC:
            return error
        sentence = f"the {route.index_name} index does not answer as it should: {error}"
        return CouldNotLook(sentence, self._ways_out(error.hint))

    def _first(self, route: Route, session: Session) -> str:
        probed = self._probed(route)
        patience = _HURRIED if len(route.urls) > 1 else _PATIENT
        said: list[str] = []
        hints: list[str] = []
        for url in route.urls:
            failed = _probe(url, probed, session, patience)
            if failed is None:
                if said:
                    self.said.append(f"{'; '.join(said)}; {session.public(url)} is used")
                return url
            said.append(str(failed))
            hints.append(failed.hint)
        raise CouldNotLook(
            f"the {route.index_name} index does not answer: {'; '.join(said)}",
            self._ways_out(next(filter(None, hints), "")),
        )

    def _decides(self, route: Route) -> bool:
        """Whether the stack's distribution comes from here, an index of its own."""
        distribution = canonicalize_name(self.stack.distribution)
        return route.index_name != PUBLIC and self.of(distribution).index_name == route.index_name

    def _probed(self, route: Route) -> str:
        """A project that this index has if it is the right one; "" for asking its front page."""
        index = next((i for i in self._indexes if i.name == route.index_name), None)
        distribution = canonicalize_name(self.stack.distribution)
        if index is None or index.claims(distribution):
            return distribution
        plain = (p for p in index.packages if not set(p) & set("*?["))
        return next(plain, "")

    def _ways_out(self, hint: str) -> str:
        """What mends it, where that is known, and what can be had instead."""
        stacks = [f"--stack {name}" for name in self.stack.otherwise]
        ways = ["another address of it (--index NAME=URL)", *stacks, "NVIDIA's container"]
        mends = f"{hint.rstrip('.')}. " if hint else ""
        return f"{mends}Alternatives: {', '.join(ways[:-1])}, or {ways[-1]}."


def _probe(
    url: str, project: str, session: Session, patience: dict[str, Any]
) -> CouldNotLook | None:
    """Why an address does not do, when it is asked for a project; None for a page with files."""
    page = f"{url.rstrip('/')}/{project}/" if project else url
    shown = session.public(url)
    try:
        with session.get(page, headers=HEADERS, **patience) as response:
            if not project:
                return None
            kind = response.headers.get("Content-Type", "")
            files = parse(response.content, kind, response.url)
    except CouldNotLook as error:
        if getattr(error, "status", None) == 404:
            lacks = (
                f"{shown} has no {project}" if project else f"{shown} is not a package index (404)"
            )
            return CouldNotLook(lacks)
        named = urlsplit(url).hostname or url
        said = str(error)
        return CouldNotLook(said if named in said else f"{shown}: {said}", error.hint)
    return None if files else CouldNotLook(f"{shown} has no file of {project}")


def _asked(stack: Stack, indexes: list[str]) -> dict[str, list[str]]:
    """``--index`` by index name; what names no index is for the public one."""
    known = [index.name for index in stack.indexes]
    asked: dict[str, list[str]] = {}
    for text in indexes:
        named = not text.startswith(("https://", "http://"))
        name, _, url = text.partition("=") if named else (PUBLIC, "", text)
        if named and name not in (PUBLIC, *known):
            has = f"its indexes are {', '.join(known)}" if known else "it has no index of its own"
            raise UsageError(
                f"--index {typed(text)}: the stack {stack.name} has no index named {typed(name)}",
                f"{has[0].upper()}{has[1:]}; a URL alone stands for the public index.",
            )
        if not is_index(url):
            raise UsageError(f"--index {typed(text)}: it takes a URL with https://", QUOTED)
        asked.setdefault(name, []).append(url)
    return asked


def _overheard(indexes: list[str]) -> list[str]:
    """A remark on passwords in ``--index``: a command line is nobody's secret."""
    return [
        f"--index {typed(text)} holds a password, which every user of this machine can read in the list of"
        " processes while envcheck runs; ~/.netrc, the keyring program, or UV_INDEX_NAME_USERNAME and"
        " UV_INDEX_NAME_PASSWORD (NAME: PUBLIC, or the index's) keep it out of there"
        for text in indexes
        if ":" in text.partition("://")[2].partition("/")[0].rpartition("@")[0]
    ]
