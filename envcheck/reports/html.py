"""Pages from templates: one HTML file each, which needs no network and in which foreign text stays text.

The templates and the files that they need lie in templates/. Every value is made printable and escaped.
"""

from __future__ import annotations

import base64
import hashlib
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

_TEMPLATES = Path(__file__).parent / "templates"


class PageSection(msgspec.Struct, frozen=True):
    """template: the file that shows ``data``; count: beside the title in the table of contents."""

    id: str
    title: str
    template: str
    data: dict[str, Any]
    count: str = ""


class Masthead(msgspec.Struct, frozen=True, kw_only=True):
    """kind: the outcome whose shape and colour the verdict has. items: what the verdict counts. back: a link,
    and its words. facts: names and values; empty ones are not shown."""

    about_what: str
    title: str
    kind: str
    word: str
    items: Sequence[str] = ()
    about: str = ""
    back: tuple[str, str] = ("", "")
    simulated: str = ""
    note: str = ""
    facts: Sequence[tuple[str, str]] = ()


def page(
    title: str,
    head: Masthead,
    sections: Sequence[PageSection],
    *,
    foot: str = "",
    styles: Sequence[str] = (),
    scripts: Sequence[str] = ("page.js",),
    generator: str = "envcheck",
) -> str:
    """The whole page. styles, scripts: files with more CSS and scripts than all pages have."""
    css = [file("page.css"), *map(file, styles)]
    script = Markup("").join(map(file, scripts))
    return part(
        "page.html",
        title=title,
        head=head,
        sections=sections,
        foot=foot,
        styles=css,
        script=script,
        policy=_policy(tuple(css), script),
        generator=generator,
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
        "count": lambda number: f"{number:,}",
        "capital": lambda text: text[:1].upper() + text[1:],
        "icon": lambda svg: Markup(quote(svg, safe="='/ :")),
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
