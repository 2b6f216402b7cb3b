"""One HTML file: no script, no network, everything foreign escaped. For reports with plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .plots.svg import style, tag, text

# Nothing may be fetched or run, whatever stands in the page: its own style is all that counts.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_STYLE = """\
body { margin: 0 auto; padding: 1rem; max-width: 64rem; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; } .wide svg { min-width: 44rem; width: 100%; display: block; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid var(--grid);
  white-space: nowrap; } td.wraps { white-space: normal; overflow-wrap: anywhere; }
th.right, td.right { text-align: right; }
p, li, dd { overflow-wrap: anywhere; } dt { font-weight: 600; } dd { margin: 0 0 .4rem 0; }
.quiet { color: var(--quiet); } code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: .6rem; background: var(--band); }
.fail, .warn, .could-not-run { font-weight: 700; } .fail { color: var(--c4); } .warn { color: var(--c1); }
.could-not-run { color: var(--c3); } .pass { color: var(--c2); }
@media print { body { max-width: none; } }
"""


def whole(title: str, parts: Iterable[str]) -> str:
    """The page. ``title`` is text, the parts are markup."""
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{text(title)}</title>",
        f"<style>\n{style()}\n{_STYLE}</style>",
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n'
        + "\n".join(head)
        + f"\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


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
        f"<dt>{text(name)}</dt><dd>{text(value)}</dd>\n" for name, value in items if value
    )
    return f"<dl>\n{told}</dl>" if told else ""


def command(words: str) -> str:
    return f"<pre><code>{text(words)}</code></pre>"


def plot(svg: str) -> str:
    """An SVG, which a narrow screen scrolls rather than shrinks."""
    return f'<div class="wide">{svg}</div>' if svg else ""


def table(
    columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[tuple[str, str]]], title: str = ""
) -> str:
    """columns: headings, each with the kind of its cells ("right", "wraps"). rows: cells with kinds."""
    caption = tag("caption", text(title)) if title else ""
    head = "".join(
        tag("th", text(words) or " ", class_=kind, scope="col") for words, kind in columns
    )
    lines = []
    for row in rows:
        cells = [
            tag("td", text(words) or " ", class_=" ".join(filter(None, (kind, own))))
            for (words, own), (_, kind) in zip(row, columns, strict=True)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(lines)
    return (
        f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )
