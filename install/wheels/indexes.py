"""The package indexes of one stack: where each is, and what to do where one does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from ...exit_codes import CouldNotLook, UsageError
from ..catalogue.model import PUBLIC, Stack
from ..network.addresses import QUOTED, is_index, typed
from ..request import Request

if TYPE_CHECKING:
    from ..network.public_index import PublicIndex
    from ..network.session import Session

# For each of several addresses, in seconds without a byte; the only one is waited for as for any page.
_HURRIED: dict[str, Any] = {"timeout": 10.0, "attempts": 2}
_ACCEPT = {"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.9"}


class Indexes:
    """Each package belongs to one index: the stack's own that claims its name, else the public one.

    Raises UsageError for an index in the request that the stack does not know or that is no URL.
    """

    def __init__(
        self, stack: Stack, request: Request, public: PublicIndex, session: Session
    ) -> None:
        self.stack = stack
        self.session = session
        self.insecure = list(request.allow_insecure)
        self._urls = {PUBLIC: [public.url]}
        self._urls |= {index.name: index.urls for index in stack.indexes}
        self._urls |= _asked(stack, request.indexes)
        self._settled: dict[str, str] = {}
        self.remarks = list(public.remarks)

    @property
    def names(self) -> list[str]:
        """Of the indexes, the public one first."""
        return list(self._urls)

    def url(self, name: str) -> str:
        """Where this index is for the whole run, ending in "/"; it may hold credentials.

        Of several addresses, the first that answers. The stack's own that its distribution comes from is
        asked in any case: it may be a mirror that the user has mistyped, and the resolver would only say
        that there are no versions. Raises CouldNotLook with each one's error where none answers.
        """
        if name not in self._settled:
            urls = self._urls[name]
            for url in urls:
                self.session.learn(url, name)
                self.session.permit(url)
            decides = self.stack.index_of(canonicalize_name(self.stack.distribution))
            asked = len(urls) > 1 or name == decides != PUBLIC
            self._settled[name] = self._first(name, urls) if asked else urls[0]
        return self._settled[name].rstrip("/") + "/"

    def public_url(self, name: str) -> str:
        """``url`` without credentials."""
        return self.session.public(self.url(name))

    def answers(self) -> str:
        """Whether the stack's own indexes answer: "", or the sentence with each one's error."""
        try:
            for index in self.stack.indexes:
                self.url(index.name)
        except CouldNotLook as error:
            return str(error)
        return ""

    def ask(self, url: str) -> None:
        """Ask for what uv could not get. Raises CouldNotLook with why; else uv may try again."""
        try:
            self.session.get(url, headers=_ACCEPT, file=not url.endswith("/")).close()
        except CouldNotLook as error:
            own = next((n for n in self._urls if url.startswith(self.public_url(n))), PUBLIC)
            if own == PUBLIC:
                raise
            sentence = f"the {own} index does not answer as it should: {error}"
            raise CouldNotLook(sentence, self._ways_out(error.hint)) from None

    def _first(self, name: str, urls: list[str]) -> str:
        problems: list[str] = []
        hint = ""
        for url in urls:
            try:
                lacks = self._lacks(url, self._probed(name), **(_HURRIED if urls[1:] else {}))
            except CouldNotLook as error:
                lacks, hint = str(error), hint or error.hint
            if not lacks:
                if problems:
                    used = f"{self.session.public(url)} is used instead"
                    self.remarks.append(f"{'; '.join(problems)}; {used}")
                return url
            problems.append(lacks)
        raise CouldNotLook(
            f"the {name} index does not answer: {'; '.join(problems)}", self._ways_out(hint)
        )

    def _probed(self, name: str) -> str:
        """A project that this index has if it is the right one; "" for asking its front page."""
        distribution = canonicalize_name(self.stack.distribution)
        own = next((index for index in self.stack.indexes if index.name == name), None)
        if own is None or own.claims(distribution):
            return distribution
        return next((one for one in own.packages if not set(one) & set("*?[")), "")

    def _lacks(self, url: str, project: str, **patience: Any) -> str:
        """Why this is not the right index, when it is asked for a project; "" for a page that names files.

        Raises CouldNotLook where it does not answer.
        """
        shown = self.session.public(url)
        try:
            page = f"{url.rstrip('/')}/{project}/" if project else url
            with self.session.get(page, headers=_ACCEPT, **patience) as response:
                has_files = b".whl" in response.content or b".tar.gz" in response.content
        except CouldNotLook as error:
            if getattr(error, "status", None) == 404:
                return f"{shown} has no {project or 'package index (404)'}"
            why = str(error)
            named = (urlsplit(url).hostname or url) in why
            raise CouldNotLook(why if named else f"{shown}: {why}", error.hint) from None
        return "" if has_files or not project else f"{shown} has no file of {project}"

    def _ways_out(self, hint: str) -> str:
        """What mends it, where that is known, and what can be had instead."""
        stacks = [f"--stack {name}, " for name in self.stack.otherwise]
        mends = f"{hint.rstrip('.')}. " if hint else ""
        ways = f"another address of it (--index NAME=URL), {''.join(stacks)}or NVIDIA's container"
        return f"{mends}Alternatives: {ways}."


def _asked(stack: Stack, indexes: list[str]) -> dict[str, list[str]]:
    """``--index`` by index name; what names no index is for the public one."""
    known = [index.name for index in stack.indexes]
    asked: dict[str, list[str]] = {}
    for text in indexes:
        named = not text.startswith(("https://", "http://"))
        name, _, url = text.partition("=") if named else (PUBLIC, "", text)
        if name not in (PUBLIC, *known):
            has = f"Its indexes are {', '.join(known)}" if known else "It has no index of its own"
            raise UsageError(
                f"--index {typed(text)}: the stack {stack.name} has no index named {typed(name)}",
                f"{has}; a URL alone stands for the public index.",
            )
        if not is_index(url):
            raise UsageError(f"--index {typed(text)}: it takes a URL with https://", QUOTED)
        asked.setdefault(name, []).append(url)
    return asked
