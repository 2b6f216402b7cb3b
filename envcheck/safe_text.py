"""Foreign text made safe to show: the one place that knows how."""

from __future__ import annotations

import re
from collections.abc import Callable

# No sentence of ours is as long; what a hostile or broken file holds may be.
LONGEST = 2000

# Printable to Python, and nothing to see: what Unicode's DerivedCoreProperties.txt calls
# Default_Ignorable_Code_Point beyond category Cf, and the braille blank.
_INVISIBLE = frozenset(
    [
        0x034F,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        0x2800,
        0x3164,
        0xFFA0,
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    ]
)

# What rich writes for our own colours.
_STYLE = re.compile(r"(\x1b\[[0-9;]{0,40}m)")


class _Escapes(dict[int, str]):
    """For str.translate: what a character becomes; those that can be seen, and ``kept``, stay."""

    def __init__(self, kept: str, escape: Callable[[str], str]) -> None:
        super().__init__({code: chr(code) for code in [*range(32, 127), *map(ord, kept)]})
        self._escape = escape

    def __missing__(self, code: int) -> str:
        character = chr(code)
        seen = character.isprintable() and code not in _INVISIBLE
        return character if seen else self._escape(character)

    def __call__(self, text: str) -> str:
        return text if text.isascii() and text.isprintable() else text.translate(self)


def _python_escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


_escaped = _Escapes("", _python_escape)
_escaped_lines = _Escapes("\n\t", _python_escape)
_escaped_json = _Escapes("\n", _json_escape)


def one_line(text: str, rest: str = "more characters") -> str:
    """A line; runs of white space become one space. ``rest`` is what is cut beyond LONGEST."""
    if (more := len(text) - LONGEST) > 0:
        text = f"{text[:LONGEST]} [{more} {rest}]"
    return _escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """Part of a line in which the spaces count: line ends and tabs are escaped, too."""
    return _escaped(text)


def lines(text: str) -> str:
    """Line ends, tabs and spaces are kept: for commands, logs and files of several lines."""
    return _escaped_lines(text)


def styled(text: str) -> str:
    """``lines``, with colours kept, too: for what our own pages write to a terminal."""
    parts = _STYLE.split(text)  # every second one is a style
    return "".join(part if number % 2 else lines(part) for number, part in enumerate(parts))


def json_text(text: str) -> str:
    """A JSON text whose strings hold nothing that cannot be printed: read again, the same values."""
    return _escaped_json(text)


def of_error(error: BaseException) -> str:
    """ "ValueError: no such fan (fan_turns, line 12)": with the innermost place of its traceback."""
    try:
        words = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its own __str__ fails
        words = type(error).__name__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" ({trace.tb_frame.f_code.co_name}, line {trace.tb_lineno})"
    return one_line(words) + where
