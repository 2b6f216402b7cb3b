"""README's pictures: what `envcheck demo` prints on a terminal, by rich's export to SVG."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.metadata import version
from io import StringIO
from pathlib import Path

import demos
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from envcheck.bench.results import results
from envcheck.checks.engine import diagnose
from envcheck.facts.snapshot import load
from envcheck.reports import bench, bench_model, tensorcores, terminal
from envcheck.reports.model import build
from envcheck.reports.page import Page

FOLDER = Path(__file__).parents[1] / "docs" / "images"
WIDTH = 80

# Another version of rich may write other bytes for the same picture.
MADE_WITH = f"rich {version('rich')}"

# rich's own, but for its fonts, which it has a browser fetch.
FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<!-- tests/generate.py, MADE_WITH -->
<title>ABOUT</title>
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, "Liberation Mono", monospace;
 font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""

# Background, text, the eight colours, and the eight bright ones.
THEME = TerminalTheme(
    (0x1E, 0x22, 0x27),
    (0xD7, 0xDA, 0xE0),
    [
        (0x3F, 0x44, 0x51),
        (0xFF, 0x6B, 0x68),
        (0x8C, 0xC2, 0x65),
        (0xE5, 0xC0, 0x7B),
        (0x61, 0xAF, 0xEF),
        (0xD5, 0x8F, 0xE8),
        (0x5F, 0xC9, 0xD8),
        (0xD7, 0xDA, 0xE0),
    ],
)


def report(name: str) -> str:
    """What `envcheck demo NAME` prints on a terminal with colours."""
    snapshot = load(demos.build(name))
    found = build(snapshot, diagnose(snapshot))
    return terminal.render(found, snapshot, width=WIDTH, colour=True, elsewhere=True)


def table(name: str) -> str:
    """Its Tensor Core table alone."""
    snapshot = load(demos.build(name))
    page = Page(width=WIDTH, colour=True)
    made = tensorcores.section(build(snapshot, diagnose(snapshot)), snapshot)
    assert made is not None
    terminal.draw(page, made)
    return page.text().lstrip("\n")


def trained(name: str) -> str:
    """What `envcheck demo bench` begins with: the verdict, and the table of ResNet-50."""
    snapshot = load(demos.build(name))
    found = results(snapshot)
    assert found is not None
    verdict = bench_model.build(snapshot, found, diagnose(snapshot, [bench_model.AREA]))
    text = bench.render(verdict, found, snapshot, width=WIDTH, colour=True, elsewhere=True)
    return text.partition("\n\n\x1b[1mParity")[0]


# file: its title, and what is in it
PICTURES: dict[str, tuple[str, Callable[[], str]]] = {
    "bench.svg": ("envcheck demo bench (simulated)", lambda: trained("bench")),
    "report.svg": ("envcheck demo heat (simulated)", lambda: report("heat")),
    "tensor-cores.svg": (
        "envcheck demo healthy -v: Tensor Cores (simulated)",
        lambda: table("healthy"),
    ),
}


def draw(name: str) -> str:
    """The SVG's text."""
    title, written = PICTURES[name]
    console = Console(
        record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="standard"
    )
    console.print(Text.from_ansi(written().rstrip("\n")), soft_wrap=True)
    form = FORMAT.replace("MADE_WITH", MADE_WITH).replace("ABOUT", escape(title))
    svg = console.export_svg(
        title=title, theme=THEME, code_format=form, unique_id=name.partition(".")[0]
    )
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def write() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        (FOLDER / name).write_text(draw(name))
