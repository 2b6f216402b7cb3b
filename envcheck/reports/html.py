"""Pages from templates: one HTML file each, which needs no network and in which foreign text stays text.

The templates and the files that they need lie in templates/. Every value is made printable and escaped.
"""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .. import safe_text

# In the first lines of a fleet's page, and of its machines': what has this may be written anew.
OF_A_FLEET = "envcheck fleet"

CHARACTER = 7.3  # the mean width of a character in a drawing, in the drawing's units

_TEMPLATES = Path(__file__).parent / "templates"


class PageSection(msgspec.Struct, frozen=True):
    """A part of a page under its own heading.

    template: the file that shows ``data``; count: beside the title in the table of contents; parts: sections
    below this one.
    """

    id: str
    title: str
    template: str = ""
    data: dict[str, Any] = {}
    count: str = ""
    parts: Sequence[PageSection] = ()


class Masthead(msgspec.Struct, frozen=True, kw_only=True):
    """What a page begins with.

    kind: the outcome whose shape and colour the verdict has. items: what the verdict counts.
    back: a link to the page of more, and its words. facts: names and values; empty ones are not shown.
    template: a file for more below it.
    """

    about_what: str
    title: str
    kind: str
    word: str
    items: Sequence[str] = ()
    about: str = ""
    when: str = ""
    back: tuple[str, str] = ("", "")
    simulated: str = ""
    note: str = ""
    facts: Sequence[tuple[str, str]] = ()
    template: str = ""


def page(
    title: str,
    head: Masthead,
    sections: Sequence[PageSection],
    *,
    foot: str = "",
    styles: Sequence[str] = (),
    scripts: Sequence[str] = ("page.js",),
    generator: str = "envcheck",
    template: str = "page.html",
    **more: Any,
) -> str:
    """The whole page. styles, scripts: files with more CSS and scripts than all pages have."""
    css = [file("plots.css") + file("page.css"), *map(file, styles)]
    script = Markup("").join(map(file, scripts))
    return part(
        template,
        title=title,
        head=head,
        sections=sections,
        foot=foot,
        styles=css,
        script=script,
        policy=_policy(tuple(css), script),
        generator=generator,
        **more,
    )


def part(template: str, **values: Any) -> Markup:
    """A template filled with values."""
    return Markup(_environment().get_template(template).render(values))


@cache
def file(name: str) -> Markup:
    """A file of ours that becomes part of a page as it is."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


@cache
def _policy(styles: tuple[str, ...], script: str) -> str:
    """Only the page's own styles and script may be used; nothing may be fetched."""
    allowed = ["default-src 'none'", "style-src " + " ".join(map(_hash, styles)), "img-src data:"]
    allowed += ["script-src " + _hash(script)] if script else []
    return "; ".join([*allowed, "base-uri 'none'", "form-action 'none'"])


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        auto_reload=False,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "command": lambda text: Markup(Markup.escape(safe_text.lines(text))),
        "cut": cut,
        "count": lambda number: f"{number:,}",
        "capital": lambda text: text[:1].upper() + text[1:],
        "icon": lambda svg: Markup(quote(svg, safe="='/ :")),
        "width": width_of,
    }
    return environment


def _shown(value: Any) -> Any:
    """A value as it stands in a page: text on one line and printable, numbers short."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return _short(value) if len(value) < 160 else safe_text.one_line(value)
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


_short = lru_cache(maxsize=8192)(safe_text.one_line)


def address(file: str) -> str:
    """The address of a file beside the page."""
    return quote(file, safe="")


def width_of(text: str) -> float:
    """The approximate width of a text in a drawing."""
    if text.isascii():
        return len(text) * CHARACTER
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return (len(text) + wide) * CHARACTER


def cut(text: str, width: float) -> str:
    """The text cut to that width, with a mark where something is missing."""
    text = safe_text.one_line(text)
    if width_of(text) <= width:
        return text
    text = text[: max(0, int(width / CHARACTER))]
    while text and width_of(text + "…") > width:
        text = text[:-1]
    return text.rstrip() + "…"
