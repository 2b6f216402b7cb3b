"""Which index a package comes from: exactly one, whatever others hold under its name."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from packaging.utils import canonicalize_name

from ...exit_codes import CouldNotLook, UsageError
from ..catalogue.model import PUBLIC, Stack
from ..request import Request
from .simple import HEADERS, parse

if TYPE_CHECKING:
    from ..http.session import Session
    from .public import PublicIndex

PROBE_SECONDS = 10.0  # for each of an index's addresses


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
        # Which of several addresses was taken, and why not an earlier one.
        self.said: list[str] = []

    def of(self, name: str) -> Route:
        """A package's one index: the first that claims its normalised name, else the public one."""
        normalized = canonicalize_name(name)
        for index in self._indexes:
            if index.claims(normalized):
                return Route(index_name=index.name, urls=index.urls)
        return Route(index_name=PUBLIC, urls=self._public)

    def base(self, route: Route, session: Session) -> str:
        """The address that serves this route for the whole run, ending in "/".

        Of several, the first that answers; raises CouldNotLook with what each said where none does.
        """
        with self._locks[route.index_name]:
            if route.index_name not in self._settled:
                for url in route.urls:
                    session.learn(url, route.index_name)
                only = route.urls[0] if len(route.urls) == 1 else ""
                self._settled[route.index_name] = only or self._first(route, session)
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
        hint = " ".join(filter(None, [error.hint, self._alternatives()]))
        return CouldNotLook(sentence, hint)

    def _first(self, route: Route, session: Session) -> str:
        probed = self._probed(route)
        said: list[str] = []
        for url in route.urls:
            answer = _probe(url, probed, session)
            if not answer:
                if said:
                    self.said.append(f"{'; '.join(said)}; {session.public(url)} is used")
                return url
            said.append(answer)
        raise CouldNotLook(
            f"the {route.index_name} index does not answer: {'; '.join(said)}", self._alternatives()
        )

    def _probed(self, route: Route) -> str:
        """A project that this index has if it is the right one; "" for asking its front page."""
        index = next((i for i in self._indexes if i.name == route.index_name), None)
        distribution = canonicalize_name(self.stack.distribution)
        if index is None or index.claims(distribution):
            return distribution
        plain = (p for p in index.packages if not set(p) & set("*?["))
        return next(plain, "")

    def _alternatives(self) -> str:
        stacks = [f"--stack {name}" for name in self.stack.otherwise]
        ways = ["another address of it (--index NAME=URL)", *stacks, "NVIDIA's container"]
        return f"Alternatives: {', '.join(ways[:-1])}, or {ways[-1]}."


def _probe(url: str, project: str, session: Session) -> str:
    """What an address says when asked for a project: "" for a page with files, else a sentence."""
    page = f"{url.rstrip('/')}/{project}/" if project else url
    shown = session.public(url)
    try:
        with session.get(page, headers=HEADERS, timeout=PROBE_SECONDS, attempts=2) as response:
            if not project:
                return ""
            kind = response.headers.get("Content-Type", "")
            files = parse(response.content, kind, response.url)
    except CouldNotLook as error:
        if getattr(error, "status", None) == 404:
            return f"{shown} has no {project}" if project else f"{shown} is no package index (404)"
        named = urlsplit(url).hostname or url
        return str(error) if named in str(error) else f"{shown}: {error}"
    return "" if files else f"{shown} has no file of {project}"


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
                f"--index {_shown(text)}: the stack {stack.name} has no index named {_shown(name)}",
                f"{has[0].upper()}{has[1:]}; a URL alone stands for the public index.",
            )
        if urlsplit(url).scheme not in ("https", "http") or not urlsplit(url).hostname:
            raise UsageError(f"--index {_shown(text)}: it takes a URL with https://")
        asked.setdefault(name, []).append(url)
    return asked


def _shown(text: str) -> str:
    """What a user typed, without the credentials that a URL in it may hold."""
    head, separator, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    return head + separator + authority.rpartition("@")[2] + slash + path if separator else text
