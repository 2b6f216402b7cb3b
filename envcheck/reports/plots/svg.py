"""Elements of an SVG, in which foreign text is text and nothing else; and the style that all plots share."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache

from ... import safe_text

WIDTH = 760  # of a plot, in units of its own: a page scales it
CHARACTER = 7.3  # the width of a character of the plots' text, about
LINE = 16

# Of light pages, and of dark ones: a page, its text, its quiet text, a grid, and the colours of curves.
_LIGHT = ("#ffffff", "#1c2024", "#5a6169", "#d5d9dd", "#eceef0")
_DARK = ("#1b1f24", "#e6e8ea", "#a3abb3", "#3a4047", "#262b31")
_CURVES_LIGHT = (
    *("#0b62c4", "#b34700", "#1a7f37", "#8a3fb8"),
    *("#b3261e", "#00727a", "#6b5900", "#4d5560"),
)
_CURVES_DARK = (
    *("#6cb0ff", "#ff9e57", "#5fd07f", "#d29bf0"),
    *("#ff8a80", "#4fd0d9", "#e0c341", "#b6bec7"),
)
# How the strokes of curves are broken, so that they differ without a colour, too.
DASHES = ("", "8 3", "2 3", "8 3 2 3", "14 4", "5 5", "2 6", "10 3 2 3 2 3")


def text(value: str) -> str:
    """Foreign text for an element or an attribute: printable, and with nothing that markup is made of."""
    return _short_text(value) if len(value) <= _SHORT else _text(value)


def _text(value: str) -> str:
    return html.escape(safe_text.one_line(value), quote=True)


# Most words of a page are those of the page before.
_SHORT = 160
_short_text = lru_cache(maxsize=8192)(_text)


def tag(name: str, content: str = "", **attributes: str | float) -> str:
    """An element. ``content`` is markup already; attributes are text (an underscore stands for a hyphen)."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_quoted(_plain(value))}"'
        for key, value in attributes.items()
        if value != ""
    )
    return f"<{name}{told}>{content}</{name}>" if content else f"<{name}{told}/>"


def label(words: str, x: float, y: float, kind: str = "", anchor: str = "") -> str:
    """Words at a place: from there on, or (anchor "end", "middle") up to it or around it."""
    return tag("text", text(words), x=x, y=y, class_=kind, text_anchor=anchor)


def whole(name: str, title: str, about: str, height: float, parts: Iterable[str]) -> str:
    """An SVG of WIDTH, with what screen readers say of it. ``name``: its own in the page, for ids."""
    ids = f"{name}-title", f"{name}-about"
    return tag(
        "svg",
        "\n"
        + tag("title", text(title), id=ids[0])
        + tag("desc", text(about) or "-", id=ids[1])
        + "\n"
        + label(title, 0, 15, "title")
        + "\n"
        + "\n".join(parts)
        + "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {_plain(height)}",
        class_="plot",
        role="img",
        aria_labelledby=" ".join(ids),
    )


def width_of(words: str) -> float:
    """How wide a text is, about."""
    if words.isascii():
        return len(words) * CHARACTER
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in words)
    return (len(words) + wide) * CHARACTER


def cut(words: str, width: float) -> str:
    """As many of the words' characters as have room there, with a mark where some are missing."""
    words = safe_text.one_line(words)
    if width_of(words) <= width:
        return words
    words = words[: max(0, int(width / CHARACTER))]
    while words and width_of(words + "…") > width:
        words = words[:-1]
    return words.rstrip() + "…"


@cache
def style() -> str:
    """The CSS of plots, for light and dark screens: of a page once, whatever plots it has."""
    return "\n".join(
        [
            f":root {{ color-scheme: light dark; {_colours(_LIGHT, _CURVES_LIGHT)} }}",
            f"@media (prefers-color-scheme: dark) {{ :root {{ {_colours(_DARK, _CURVES_DARK)} }} }}",
            "svg.plot { font: 12px system-ui, sans-serif; }",
            "svg.plot text { fill: var(--ink); }",
            "svg.plot .title { font-size: 14px; font-weight: 600; }",
            "svg.plot .quiet { fill: var(--quiet); }",
            "svg.plot .end { text-anchor: end; }",
            "svg.plot .grid { stroke: var(--grid); stroke-width: 1; fill: none; }",
            "svg.plot .band { fill: var(--band); }",
            "svg.plot .mark { stroke: var(--ink); stroke-width: 2; fill: none; }",
            "svg.plot .range { stroke: var(--ink); stroke-width: 1; fill: none; }",
            "svg.plot .level { stroke: var(--quiet); stroke-width: 1.5; stroke-dasharray: 6 4; fill: none; }",
            "svg.plot .curve { stroke-width: 1.8; fill: none; stroke-linejoin: round; }",
            *(
                f"svg.plot .curve.c{n} {{ stroke: var(--c{n}); }}"
                f" svg.plot text.c{n}, svg.plot rect.c{n} {{ fill: var(--c{n}); }}"
                for n in range(len(DASHES))
            ),
        ]
    )


def alone(svg: str) -> str:
    """A plot with the style in it: a file of its own."""
    head, end, rest = svg.partition(">")
    return f"{head}{end}<style>{style()}</style>{rest}\n"


def _colours(of_page: Iterable[str], of_curves: Iterable[str]) -> str:
    names = ("page", "ink", "quiet", "grid", "band")
    told = [*zip(names, of_page, strict=True), *((f"c{n}", c) for n, c in enumerate(of_curves))]
    return " ".join(f"--{name}: {colour};" for name, colour in told)


def _quoted(value: str) -> str:
    """As ``text``, of any length: a curve has many points."""
    return html.escape(safe_text.escaped(value), quote=True)


def _plain(value: str | float) -> str:
    """A number as short as it may be: a tenth of a unit is seen by nobody."""
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
