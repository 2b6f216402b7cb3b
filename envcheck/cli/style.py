"""How the terminal wants to be written to."""

from __future__ import annotations

import os
import shutil
import sys
from typing import NamedTuple, TextIO


class Style(NamedTuple):
    width: int
    colour: bool
    utf8: bool


def columns() -> int:
    """The terminal's width; 80 where it has none or does not tell (a serial line, `script`)."""
    return shutil.get_terminal_size().columns or 80


def style_for(output: str | None) -> Style:
    """Of a result that goes to a file, or (None, "-") to standard output."""
    to_file = output not in (None, "-")
    return Style(80, colour=False, utf8=True) if to_file else style_of(sys.stdout)


def style_of(stream: TextIO) -> Style:
    """Colour only on a terminal that has it (NO_COLOR and TERM=dumb are honoured); 80 columns when piped."""
    terminal = stream.isatty()
    colour = (
        terminal
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") not in ("", "dumb")
    )
    utf8 = (stream.encoding or "").lower().replace("-", "") == "utf8"
    return Style(columns() if terminal else 80, colour, utf8)
