"""A page as a strict reader sees it: balanced, all references lead somewhere, nothing is to be fetched."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from itertools import pairwise

_VOID = {"meta", "link", "br"}
# What the pages are made of; and of a drawing. Anything else came from somewhere else.
_TAGS = {
    "html", "head", "meta", "title", "link", "style", "script", "body", "div", "header", "nav",
    "main", "footer", "section", "article", "h1", "h2", "h3", "h4", "p", "ul", "li", "a", "b",
    "span", "br", "table", "caption", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "pre",
    "code", "details", "summary", "svg", "symbol", "use", "desc", "path", "rect", "text", "g",
}  # fmt: skip


class Reading(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.problems: list[str] = []
        self.feed(page)
        self.close()
        self.problems += [f"{tag} is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.problems.append(f"{tag} has an attribute twice: {names}")
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        return [given for name, given in self.elements if name == tag]


def problems(page: str) -> list[str]:
    """What is wrong with a page; [] where nothing is."""
    read = Reading(page)
    found = list(read.problems)
    ids = [given["id"] for _, given in read.elements if "id" in given]
    found += [f"the id {one} is there twice" for one in ids if ids.count(one) > 1]
    for tag, given in read.elements:
        if tag not in _TAGS:
            found.append(f"an element {tag}")
        for name, value in given.items():
            if name.startswith("on") or name in (
                "src",
                "style",
                "srcset",
                "action",
                "http",
                "xlink:href",
            ):
                found.append(f"{tag} has {name}={value}")
            if name == "href" and not re.match(r"#|data:image/svg\+xml,|[\w.-]+\.html$", value):
                found.append(f"{tag} leads to {value}")
            if name == "href" and value.startswith("#") and value[1:] not in ids:
                found.append(f"{value} is nowhere")
            if name == "aria-labelledby" and not set(value.split()) <= set(ids):
                found.append(f"a label {value} is nowhere")
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    if levels[:1] != [1] or levels.count(1) != 1:
        found.append(f"headings begin with {levels[:3]}")
    found += [
        f"a heading {after} follows {before}"
        for before, after in pairwise(levels)
        if after > before + 1
    ]
    if not page.replace("\n", "").isprintable():
        found.append("characters that nobody sees")
    for what in ("style", "script"):
        bodies = re.findall(f"<{what}>(.*?)</{what}>", page, re.DOTALL)
        allowed = {_hash(body) for body in bodies}
        (policy,) = [given["content"] for given in read.all("meta") if given.get("http-equiv", "")]
        (named,) = re.findall(f"{what}-src ([^;]*)", policy) or [""]
        if set(named.split()) != allowed:
            found.append(f"the policy allows {what} {named}")
        found += [
            f"{what} has {bad}"
            for body in bodies
            for bad in re.findall(r"url\(|@import|https?:", body)
        ]
    return found


def _hash(body: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'"
