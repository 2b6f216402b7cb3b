"""Reads a project's HTML page: its links, and what tells a page of files apart from a login page.

The pages of indexes are written by programs, a link like the other, and may hold ten thousand of them. Such a
stretch of links is read by one expression; everything else, and every page that has more in that stretch than
links, by html.parser, which takes three times as long.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urljoin

# A link's attributes, and the address that it is relative to.
Found = Callable[[dict[str, "str | None"], str], None]

# What a login, proxy or error page has and a list of files has not.
_FOREIGN_TAGS = frozenset(("form", "input", "button", "script", "iframe", "frame"))

_TITLE = 400  # characters that are looked at

# Quoted values alone: what else HTML allows is left to html.parser.
_ATTRIBUTE = r'\s([a-z][a-z-]*)="([^"]*)"'
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_LINK = re.compile(rf"<a((?:{_ATTRIBUTE})+)\s*>[^<>&]*</a\s*>(?:\s*<br\s*/?>)?\s*")
# Before the first link: none of these changes how what follows is read.
_HEAD_TAG = re.compile(r"<[!/]?([a-zA-Z0-9-]*)")
_HEAD_TAGS = frozenset(("doctype", "html", "head", "meta", "title", "base", "body", "h1", "pre"))


# What no page of an index has so many of, and html.parser takes quadratic time for.
_DECLARATIONS = 100  # comments and the like
_OPENED = 100  # "<" before a ">"


def too_tangled(text: str) -> bool:
    """Whether html.parser would take too long for the page."""
    return text.count("<!") > _DECLARATIONS or any(
        part.count("<") > _OPENED for part in text.split(">")
    )


class HtmlPage(HTMLParser):
    """``links`` is called for each link, in order. The rest is said by the attributes."""

    def __init__(self, text: str, url: str, links: Found) -> None:
        """url: where the page came from; links are relative to it, or to what the page says."""
        super().__init__(convert_charrefs=True)
        self.api_version = ""
        self.foreign = False
        self.any_tag = False
        self._found = links
        self._base = url
        self._title = ""
        self._in_title = False
        self._read(text)

    @property
    def titled(self) -> str:
        """' ("Sign in")', or nothing."""
        title = " ".join(self._title[:_TITLE].split())[:80]
        return f' ("{title}")' if title else ""

    def _read(self, text: str) -> None:
        begin, end, links = _plain(text)
        self.feed(text[:begin])
        for link in links:
            self.any_tag = True
            attributes: dict[str, str | None] = {
                name: _unescaped(value) if "&" in value else value
                for name, value in _ATTRIBUTES.findall(link)
            }
            self._found(attributes, self._base)
        self.feed(text[end:])
        self.close()

    def updatepos(self, i: int, j: int) -> int:
        """Lines are not counted: nobody asks for them, and it is a fifth of the work."""
        return j

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.any_tag = True
        if tag == "a":
            self._found(dict(attrs), self._base)
        elif tag == "base":
            # One that is not an address is as good as none.
            with suppress(ValueError):
                self._base = urljoin(self._base, dict(attrs).get("href") or "")
        elif tag == "meta":
            self._meta(dict(attrs))
        elif tag in _FOREIGN_TAGS:
            self.foreign = True
        self._in_title = tag == "title"

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title and len(self._title) < _TITLE:
            self._title += data

    def _meta(self, attributes: dict[str, str | None]) -> None:
        if attributes.get("name") == "pypi:repository-version":
            self.api_version = attributes.get("content") or ""
        elif (attributes.get("http-equiv") or "").lower() == "refresh":
            self.foreign = True


_unescaped = lru_cache(maxsize=1024)(unescape)  # a page says ">=3.8" of thousands of files


def _plain(text: str) -> tuple[int, int, list[str]]:
    """Where a stretch of plain links begins and ends, and the attributes of each; an empty one where the page
    is not of that form."""
    none: tuple[int, int, list[str]] = (0, 0, [])
    begin = at = text.find("<a ")
    head = text[: max(begin, 0)].lower()
    if begin < 0 or head.count("<title") != head.count("</title"):
        return none
    if not _HEAD_TAGS.issuperset(_HEAD_TAG.findall(head)):
        return none
    links: list[str] = []
    for link in _LINK.finditer(text, begin):
        if link.start() != at:
            return none
        links.append(link[1])
        at = link.end()
    return begin, at, links
