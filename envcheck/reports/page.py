"""Writes text for people: wrapped at words, coloured or not, safe whatever the facts hold.

The one module that imports rich.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from functools import cache
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table
from rich.text import Text

from .. import safe_text
from ..findings.model import Outcome
from .plain import SIGNS, WORDS
from .plain import Column as Column
from .plain import Span as Span

# No command of ours is as long; what a hostile or broken Snapshot holds may be.
LONGEST_COMMAND = 10000

# A line of prose longer than this is hard to read, however wide the terminal; a table's line is not.
WIDEST = 100
WIDEST_TABLE = 200
NARROWEST = 40
KEY = 12  # cells of a column of short keys

# The report's words for outcomes carry the meaning; colour repeats it.
STYLES = {
    "": "",
    "fail": "bold red",
    "could-not-run": "bold magenta",
    "warn": "bold yellow",
    "pass": "bold green",
    "skipped": "dim",
    "code": "bold",
    "command": "bold cyan",
    "quiet": "dim",
    "heading": "bold",
}

# What our own sentences use beyond ASCII, for terminals that have no UTF-8.
_ASCII = str.maketrans("×–—‘’·µ█░", "x--''-u#-") | str.maketrans(
    {"→": "->", "…": "...", "°": " degrees ", "≥": ">=", "≤": "<=", "“": '"', "”": '"', "±": "+-"}
)

# What redaction puts in the place of a value; and a word of a command that holds one.
TOKEN = re.compile(r"<(?:home|host|serial|user|uuid)-\d+>")
_QUOTED = re.compile(r"'([^']*)'")


def unchanged(text: str) -> str:
    return text


class Page:
    """Collects lines. Facts, with "[" or escape sequences in them, are never taken for markup. width: in
    terminal cells, between NARROWEST and WIDEST; ``columns``: the same for tables, which may be wider.
    ``restore`` puts real values back where the text holds redaction tokens, ``in_place`` makes a command of
    envcheck's own work here."""

    def __init__(
        self,
        *,
        width: int = 80,
        colour: bool = False,
        utf8: bool = True,
        restore: Callable[[str], str] = unchanged,
        in_place: Callable[[str], str] = unchanged,
    ) -> None:
        self.width = max(NARROWEST, min(width, WIDEST))
        self.columns = max(NARROWEST, min(width, WIDEST_TABLE))
        self.colour = colour
        self.utf8 = utf8
        self.restore = restore
        self.in_place = in_place
        self.away = False  # whether commands are for another machine than the reader's
        self.signs = utf8 and colour  # "✗", or "FAIL"
        self.tokens: dict[str, None] = {}  # that stand in commands, in their order
        self._segments: list[Segment] = []

    def word(self, outcome: Outcome) -> str:
        """The sign of an outcome, or its word where the page has no colour or no such character."""
        return SIGNS[outcome] if self.signs else WORDS[outcome]

    def clean(self, text: str) -> str:
        """Text as it may stand in a line: real values, printable, in the terminal's characters."""
        text = self.restore(text)
        return self._encodable(safe_text.one_line(text, "more characters in the JSON report"))

    def paragraph(self, *spans: Span, indent: int = 0, hanging: int | None = None) -> None:
        """Spans with a space between them, wrapped at spaces only; continued at ``hanging``."""
        self._put(" " * indent)
        self._flow(spans, indent, indent if hanging is None else hanging)

    def hanging(self, first: Span, *spans: Span) -> None:
        """A paragraph under a first column, whose blanks count."""
        self._put(*first)
        self._put(" ")
        cells = cell_len(first[0]) + 1
        self._flow(spans, cells, cells)

    def entry(self, key: str, text: str, cells: int) -> None:
        """A row of a list with two columns, the first of ``cells``; the second wraps in its own."""
        key = self.clean(key)
        self._put("  ")
        self._put(key, "code")
        self._put(" " * max(1, cells - cell_len(key)))
        self._flow([(text, "")], 2 + max(cells, cell_len(key) + 1), 2 + cells)

    def entries(self, key: str, texts: Iterable[str], cells: int) -> None:
        """Rows of which the first alone has the key."""
        for number, text in enumerate(texts):
            self.entry("" if number else key, text, cells)

    def preformatted(self, text: str) -> None:
        """A line of our own in which the spaces count."""
        self._put(self._encodable(text) + "\n")

    def command(self, text: str, *, here: bool = False) -> None:
        """A command to paste: from the first column, never wrapped, nothing around it. A word that was
        quoted for its tokens is quoted anew for its real values. ``here``: it is for the reader's machine,
        whatever the page is about."""
        if here or not self.away:
            text = self.in_place(text)
        text = _QUOTED.sub(self._requoted, text)
        text = self.restore(text)
        self.tokens.update(dict.fromkeys(TOKEN.findall(text)))
        if len(text) > LONGEST_COMMAND:
            text = f"# a command of {len(text)} characters, which the JSON report has"
        for line in self._encodable(safe_text.lines(text)).splitlines():
            self._put(line, "command")
            self._put("\n")

    def simulated(self, what: str) -> None:
        """Says that what follows is made up; nothing for ""."""
        if what:
            self.paragraph(("Simulated, not real:", "heading"), (what, ""), hanging=2)

    def advice(self, text: str, commands: Iterable[str], *, here: bool = False) -> None:
        """What to do, and the commands for it. here: as of ``command``."""
        lead = [] if here else [("To do:", "heading")]
        self.paragraph(*lead, (text, ""), indent=0 if here else 2, hanging=4)
        for command in commands:
            self.command(command, here=here)

    def about_tokens(self) -> str:
        """What to do with the tokens that stand in commands."""
        verb = "stands for a value" if len(self.tokens) == 1 else "stand for values"
        return f"{', '.join(self.tokens)} {verb} that the Snapshot does not hold: put it in."

    def _requoted(self, word: re.Match[str]) -> str:
        return shlex.quote(self.restore(word[1])) if TOKEN.search(word[1]) else word[0]

    def blank(self) -> None:
        self._put("\n")

    def fits(self, text: str, cells: int) -> bool:
        return cell_len(text) <= cells

    def cut(self, text: str, cells: int) -> str:
        """Text cut to that many cells, after a word unless that is very long, with a mark for the rest."""
        if self.fits(text, cells):
            return text
        mark = "…" if self.utf8 else "..."
        text = text[:cells]
        while text and not self.fits(text + mark, cells):
            text = text[:-1]
        words = text.rpartition(" ")[0]
        words = (words.rpartition("; ")[0] if words.endswith(" =") else words).rstrip(" /")
        return words + mark if 2 * len(words) > len(text) else text.rstrip() + mark

    def table(
        self,
        columns: Iterable[Column],
        rows: Iterable[Iterable[Span]],
        *,
        indent: int = 0,
        gap: int = 1,
        headings: str = "heading",
    ) -> None:
        """Spans in columns, as wide as the page's ``columns`` at most; headings where a column has one."""
        columns = list(columns)
        table = Table(
            box=None,
            padding=(0, gap, 0, 0),
            pad_edge=False,
            show_header=any(column.heading for column in columns),
            header_style=STYLES[headings],
        )
        for column in columns:
            table.add_column(
                column.heading,
                justify="right" if column.right else "left",
                no_wrap=not column.wraps,
                overflow="fold" if column.wraps else "ellipsis",
            )
        for row in rows:
            table.add_row(*(Text(self.clean(text), STYLES.get(style, "")) for text, style in row))
        console = Console(
            width=self.columns - indent, color_system="standard", legacy_windows=False
        )
        options = console.options.update(width=self.columns - indent)
        for line in console.render_lines(table, options, pad=False):
            line = [*line]
            while line and not line[-1].text.strip():
                line.pop()
            self._put(" " * indent)
            for number, segment in enumerate(line):
                text = segment.text.rstrip() if number == len(line) - 1 else segment.text
                self._segments.append(Segment(self._encodable(text), segment.style))
            self._put("\n")

    def text(self) -> str:
        """All that was written, with ANSI styles where the page has colour."""
        file = StringIO()
        console = Console(
            file=file,
            width=self.width,
            force_terminal=self.colour,
            color_system="standard" if self.colour else None,
            no_color=not self.colour,
            legacy_windows=False,
        )
        console.print(Segments(Segment.simplify(self._segments)), soft_wrap=True, end="")
        return file.getvalue()

    def _flow(self, spans: Iterable[Span], column: int, margin: int) -> None:
        """Words from ``column`` on, and from ``margin`` on in the lines that follow."""
        words = [
            (word, style) for text, style in spans for word in self.clean(text).split(" ") if word
        ]
        for number, (word, style) in enumerate(words):
            if number and column + 1 + cell_len(word) > self.width:
                self._put("\n" + " " * margin)
                column = margin
            elif number:
                self._put(" ", style if style == words[number - 1][1] else "")
                column += 1
            self._put(word, style)
            column += cell_len(word)
        self._put("\n")

    def _encodable(self, text: str) -> str:
        if self.utf8:
            return text
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")

    def _put(self, text: str, style: str = "") -> None:
        self._segments.append(Segment(text, _style(style)))


@cache
def _style(name: str) -> Style | None:
    return Style.parse(STYLES[name]) if STYLES[name] else None
