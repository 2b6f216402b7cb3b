"""One HTML file: no network, everything foreign escaped. What all pages are made of."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple
from urllib.parse import quote

from . import html_style
from .plots.svg import style, tag, text

# Shapes that carry a state without a colour: each in a square of 16.
_OCTAGON = "M5 .8h6l4.2 4.2v6L11 15.2H5L.8 11V5z"
_SHAPES = {
    "fail": (_OCTAGON, "M5.4 5.4l5.2 5.2m0-5.2l-5.2 5.2"),
    "warn": ("M8 1.2L15.4 14.6H.6z", "M8 6v4.2m0 1.7v.6"),
    "pass": ("M8 .8a7.2 7.2 0 110 14.4A7.2 7.2 0 018 .8z", "M4.8 8.3l2.3 2.4 4.2-5"),
    "could-not-run": ("M8 .4L15.6 8 8 15.6.4 8z", "M6 6.5a2 2 0 114 0c0 1.4-2 1.4-2 2.8m0 1.6v.6"),
    "skipped": ("", "M3.5 8h9"),
}
# What the tab of a browser shows: nothing is fetched for it.
_ICON = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>{}</svg>"
_ICON_COLOURS = {
    "fail": "#c0342b",
    "warn": "#b26a00",
    "pass": "#1a7f37",
    "could-not-run": "#7a45a8",
}


# In the first lines of a fleet's page, and of its machines': what has this may be written anew.
OF_A_FLEET = "envcheck fleet"


class PageSection(NamedTuple):
    """A part of a page with a heading of its own. parts: markup; id: its place in links."""

    id: str
    title: str
    parts: Sequence[str]
    number: str = ""  # beside its name in the table of contents


def whole(
    title: str,
    parts: Iterable[str],
    *,
    head: str = "",
    contents: Iterable[tuple[str, str, str]] = (),  # id, words, count
    foot: str = "",
    script: str = "",
    css: str = "",
    kind: str = "",
    generator: str = "envcheck",
) -> str:
    """The page. ``title`` is text; head, parts and foot are markup.

    contents: ids with their words and counts. script, css: more of a page's own, which nothing foreign
    may be in; a browser runs and uses these very texts and no other. kind: the state that its icon shows.
    generator: what made the file, for who finds it.
    """
    styles = [style() + "\n" + html_style.STYLE, *filter(None, [css])]
    scripts = [one for one in (script,) if one]
    policy = _policy(tuple(styles), tuple(scripts))
    listed = "".join(
        f'<li><a href="#{text(id_)}">{text(words)}'
        + (f' <span class="count">{text(count)}</span>' if count else "")
        + "</a></li>"
        for id_, words, count in contents
    )
    nav = f'<nav class="contents" aria-label="Contents"><ul>{listed}</ul></nav>' if listed else ""
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="generator" content="{text(generator)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<title>{text(title)}</title>\n<link rel="icon" href="{_icon(kind)}">\n'
        + "".join(f"<style>{one}</style>\n" for one in styles)
        + '</head>\n<body>\n<a class="skip" href="#main">Skip to the content</a>\n'
        + _SYMBOLS
        + '<div class="page">\n'
        + (f"<header>\n{head}\n</header>\n" if head else "")
        + nav
        + f'\n<main id="main" tabindex="-1">\n{body}\n</main>\n'
        + (f"<footer>\n{foot}\n</footer>\n" if foot else "")
        + "</div>\n"
        + "".join(f"<script>{one}</script>\n" for one in scripts)
        + "</body>\n</html>\n"
    )


@cache
def _policy(styles: tuple[str, ...], scripts: tuple[str, ...]) -> str:
    """Nothing may be fetched, and nothing run or laid out by, but the page's own, whatever stands in it."""
    told = ["default-src 'none'", "style-src " + " ".join(map(_hash, styles)), "img-src data:"]
    told += ["script-src " + " ".join(map(_hash, scripts))] if scripts else []
    return "; ".join([*told, "base-uri 'none'", "form-action 'none'"])


def _hash(what: str) -> str:
    digest = hashlib.sha256(what.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _icon(kind: str) -> str:
    colour = _ICON_COLOURS.get(kind, "#5a6169")
    shape, sign = _SHAPES.get(kind, _SHAPES["skipped"])
    drawn = f"<path fill='{colour}' d='{shape or _SHAPES['pass'][0]}'/>"
    drawn += f"<path fill='none' stroke='#fff' stroke-width='1.7' d='{sign}'/>"
    return "data:image/svg+xml," + quote(_ICON.format(drawn), safe="='/ :")


def _symbols() -> str:
    told = "".join(
        f'<symbol id="m-{kind}" viewBox="0 0 16 16">'
        + (f'<path class="m-body" d="{shape}"/>' if shape else "")
        + f'<path class="{"m-sign" if shape else "m-dash"}" d="{sign}"/></symbol>'
        for kind, (shape, sign) in _SHAPES.items()
    )
    return f'<svg class="symbols" width="0" height="0" aria-hidden="true">{told}</svg>\n'


_SYMBOLS = _symbols()


def masthead(
    eyebrow: str,
    title: str,
    kind: str,
    word: str,
    told: Sequence[str] = (),
    *,
    about: str = "",
    when: str = "",
    back: tuple[str, str] = ("", ""),
    simulated: str = "",
) -> str:
    """What a page begins with: what it is of, and the verdict by shape, colour and word.

    told: what the verdict counts. back: where a page of more is, and what it is called.
    """
    link, words = back
    parts = [f'<p class="eyebrow"><span><b>envcheck</b> {text(eyebrow)}</span>']
    parts += [f'<a href="{text(link)}">{text(words)}</a>' if link else "", "</p>"]
    parts += [f"<h1>{text(title)}</h1>"]
    parts += [f'<p class="lead">{text(about)}</p>' if about else ""]
    parts += [f'<p class="lead small">{text(when)}</p>' if when else ""]
    parts += [f'<p class="note">Simulated, not real: {text(simulated)}</p>' if simulated else ""]
    items = "".join(f"<li>{text(one)}</li>" for one in told)
    body = f"<p>{text(told[0])}</p>" if len(told) == 1 else f"<ul>{items}</ul>" if told else ""
    parts += [
        f'<div class="verdict {kind}">{mark(kind)}<div><p class="word">{text(word)}</p>{body}</div></div>'
    ]
    return "\n".join(filter(None, parts))


def mark(kind: str) -> str:
    """The shape of a state; words beside it say the same."""
    if kind not in _SHAPES:
        return ""
    return f'<svg class="m {kind}" aria-hidden="true"><use href="#m-{kind}"/></svg>'


def state(kind: str, words: str) -> str:
    """A state by shape, colour and word."""
    return f'<span class="state {kind}">{mark(kind)}{text(words)}</span>'


def section(one: PageSection, level: int = 2) -> str:
    """A part under its heading, as a place that links and readers of screens find."""
    parts = "\n".join(filter(None, one.parts))
    return (
        f'<section id="{text(one.id)}" aria-labelledby="{text(one.id)}-h">\n'
        f'<h{level} id="{text(one.id)}-h">{text(one.title)}</h{level}>\n{parts}\n</section>'
    )


def contents(sections: Iterable[PageSection]) -> list[tuple[str, str, str]]:
    return [(one.id, one.title, one.number) for one in sections]


def details(summary: str, body: str, *, id_: str = "", is_open: bool = False) -> str:
    """What opens; summary and body are markup."""
    of_id = f' id="{text(id_)}"' if id_ else ""
    return f"<details{of_id}{' open' if is_open else ''}><summary>{summary}</summary>\n{body}</details>"


def heading(words: str, level: int = 2) -> str:
    return f"<h{level}>{text(words)}</h{level}>"


def paragraph(words: str, kind: str = "") -> str:
    return tag("p", text(words), class_=kind) if words else ""


def listed(items: Iterable[tuple[str, str, str]]) -> str:
    """Items of (a word that leads, its kind, text)."""
    told = "".join(
        f"<li>{tag('span', text(lead), class_=kind) + ' ' if lead else ''}{text(words)}</li>\n"
        for lead, kind, words in items
    )
    return f"<ul>\n{told}</ul>" if told else ""


def facts(items: Iterable[tuple[str, str]]) -> str:
    """Names and what they are; without those that are nothing."""
    told = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>\n"
        for name, value in items
        if value
    )
    return f'<dl class="facts">\n{told}</dl>' if told else ""


def command(*words: str) -> str:
    """Commands to copy, a line each."""
    told = "\n".join("\n".join(text(line) for line in one.split("\n")) for one in words)
    return f'<pre class="command"><code>{told}</code></pre>'


def plot(svg: str, name: str = "Plot") -> str:
    """An SVG, which a narrow screen scrolls rather than shrinks."""
    return (
        f'<div class="wide" role="group" tabindex="0" aria-label="{text(name)}">{svg}</div>'
        if svg
        else ""
    )


def table(
    columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[tuple[str, str]]], title: str = ""
) -> str:
    """columns: headings, each with the kind of its cells ("right", "wraps"). rows: cells with kinds."""
    return markup_table(
        columns,
        [[(text(words), kind) for words, kind in row] for row in rows],
        title,
    )


def markup_table(
    columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[tuple[str, str]]], title: str = ""
) -> str:
    """As ``table``, of cells that are markup. Each row's first cell is its heading."""
    caption = f"<caption>{text(title)}</caption>" if title else ""
    head = "".join(
        f'<th scope="col"{_class(kind)}>{text(words) or "&nbsp;"}</th>' for words, kind in columns
    )
    kinds = [kind for _, kind in columns]
    plain = [f"<td{_class(kind)}>" for kind in kinds]
    first = f'<th scope="row"{_class(kinds[0])}>' if kinds else ""
    lines = []
    for row in rows:
        cells = [
            (plain[place] if not own else f"<td{_class(kinds[place], own)}>") + words + "</td>"
            for place, (words, own) in enumerate(row)
        ]
        words, own = row[0]
        start = f'<th scope="row"{_class(kinds[0], own)}>' if own else first
        cells[0] = f"{start}{words or '&nbsp;'}</th>"
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(lines)
    name = text(title) or ", ".join(filter(None, (text(words) for words, _ in columns)))
    return (
        f'<div class="wide" role="group" tabindex="0" aria-label="Table: {name}"><table>{caption}'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _class(*kinds: str) -> str:
    told = " ".join(filter(None, kinds))
    return f' class="{told}"' if told else ""
