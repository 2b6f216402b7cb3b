"""The package indexes of one stack: where each is, and what to do where one does not answer."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from packaging.utils import canonicalize_name

from ... import scratch
from ...exit_codes import CouldNotLook, UsageError
from ..catalogue.model import PUBLIC, Stack
from ..network import addresses, troubles
from ..network.access import Access
from ..request import Request
from . import child_env, uv

if TYPE_CHECKING:
    from ..network.public_index import PublicIndex

_AT_A_URL = re.compile(r"Failed to fetch: `?(?P<url>https?://[^\s`]+)")
_REFUSED = re.compile(r"An index(?: URL)? \((?P<url>https?://[^\s)]+)\) ")
_NONE_THERE = re.compile(r"was not found in|there are no versions of")


class Indexes:
    """Each package belongs to one index: the stack's own that claims its name, else the public one.

    Raises UsageError for an index in the request that the stack does not know or that is no URL.
    """

    def __init__(self, stack: Stack, request: Request, public: PublicIndex, access: Access) -> None:
        self.stack = stack
        self.access = access
        self._insecure = list(request.allow_insecure)
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
                self.access.permit(url)
                self.access.learn(url, name)
            decides = self.stack.index_of(canonicalize_name(self.stack.distribution))
            asked = len(urls) > 1 or name == decides != PUBLIC
            self._settled[name] = self._first(name, urls) if asked else urls[0]
        return self._settled[name].rstrip("/") + "/"

    def public_url(self, name: str) -> str:
        """``url`` without credentials."""
        return addresses.public(self.url(name))

    def answers(self) -> str:
        """Whether the stack's own indexes answer: "", or the sentence with each one's error."""
        try:
            for index in self.stack.indexes:
                self.url(index.name)
        except CouldNotLook as error:
            return str(error)
        return ""

    def variables(self, urls: dict[str, str]) -> dict[str, str]:
        """For uv: credentials by uv's names of these URLs, and hosts whose certificates are not checked."""
        found = {"UV_INSECURE_HOST": " ".join(self._insecure)} if self._insecure else {}
        for name, url in urls.items():
            if (pair := self.access.known(url)) is not None:
                found |= {f"UV_INDEX_{name.upper()}_USERNAME": pair[0]}
                found |= {f"UV_INDEX_{name.upper()}_PASSWORD": pair[1]}
        return found

    def trouble(self, stderr: str) -> CouldNotLook | None:
        """What kept uv from fetching something, by what it wrote; None where nothing did."""
        found = _AT_A_URL.search(stderr) or _REFUSED.search(stderr)
        if found is None:
            return None
        error = troubles.explained(found["url"], stderr)
        own = next(
            (n for n in self._settled if found["url"].startswith(self.public_url(n))), PUBLIC
        )
        if own == PUBLIC:
            return error
        sentence = f"the {own} index does not answer as it should: {error}"
        return CouldNotLook(sentence, self._ways_out(error.hint))

    def _first(self, name: str, urls: list[str]) -> str:
        problems: list[str] = []
        hint = ""
        for url in urls:
            lacks, more = self._lacks(url, self._probed(name))
            hint = hint or more
            if not lacks:
                if problems:
                    used = f"{addresses.public(url)} is used instead"
                    self.remarks.append(f"{'; '.join(problems)}; {used}")
                return url
            problems.append(lacks)
        raise CouldNotLook(
            f"the {name} index does not answer: {'; '.join(problems)}", self._ways_out(hint)
        )

    def _probed(self, name: str) -> str:
        """A project that this index has if it is the right one; "": none is known."""
        distribution = canonicalize_name(self.stack.distribution)
        own = next((index for index in self.stack.indexes if index.name == name), None)
        if own is None or own.claims(distribution):
            return distribution
        return next((one for one in own.packages if not set(one) & set("*?[")), "")

    def _lacks(self, url: str, project: str) -> tuple[str, str]:
        """("", "") for an index with files of the project; else why it is not the right one, and a hint."""
        if not project:
            return "", ""
        try:
            result = self._asked_by_uv(url, project)
        except CouldNotLook as error:
            return str(error), error.hint
        words = result.stderr.decode("utf-8", "replace")
        if found := _AT_A_URL.search(words) or _REFUSED.search(words):
            trouble = troubles.explained(found["url"], words)
            return str(trouble), trouble.hint
        if not result.ok and _NONE_THERE.search(words):
            return f"{addresses.public(url)} has no {project}", ""
        return "", ""

    def _asked_by_uv(self, url: str, project: str) -> Any:
        with scratch.directory() as folder:
            config, wanted = folder / "uv.toml", folder / "requirements.in"
            index = {"name": "index0", "url": addresses.public(url), "default": True}
            config.write_text(tomli_w.dumps({"index": [index]}), encoding="utf-8")
            wanted.write_text(f"{project}\n", encoding="utf-8")
            argv: list[str | Path] = ["pip", "compile", wanted, "--quiet", "--no-deps"]
            argv += ["--only-binary", ":all:", "--python", sys.executable]
            env = {**child_env.online(folder), **self.variables({"index0": url})}
            return uv.run_online(argv, env, config, f"the index {addresses.host(url)}")

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
        shown = addresses.typed(text)
        if name not in (PUBLIC, *known):
            has = f"Its indexes are {', '.join(known)}" if known else "It has no index of its own"
            raise UsageError(
                f"--index {shown}: the stack {stack.name} has no index named {addresses.typed(name)}",
                f"{has}; a URL alone stands for the public index.",
            )
        if not addresses.is_index(url):
            raise UsageError(f"--index {shown}: it takes a URL with https://", addresses.QUOTED)
        asked.setdefault(name, []).append(url)
    return asked
