"""Where a TOML document's keys and values stand: line and column, for errors that point at them.

TOML parsers give the values alone. This reads a document that a parser has accepted already: it finds
its way through the text and checks nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

Path = tuple[str | int, ...]  # ("releases", 2, "python", 0)

_BETWEEN = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")  # and the commas of arrays and inline tables
_BLANKS = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")
_STRINGS = (
    re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}', re.DOTALL),
    re.compile(r"'''.*?'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\]|\\.)*"'),
    re.compile(r"'[^']*'"),
)


class Position(NamedTuple):
    """Both count from 1; columns are characters."""

    line: int
    column: int


class Positions:
    """The positions of one document. Tables and their elements stand at their header."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(end.end() for end in re.finditer("\n", text))]  # where each begins
        self._at = 0
        self._tables: dict[Path, int] = {}  # arrays of tables: how many elements there are by now
        self._keys: dict[Path, int] = {}
        self._values: dict[Path, int] = {}
        self._read()

    def of(self, path: Path, *, key: bool = False) -> Position:
        """Where the value of this path begins, or its key; where it is not there, what it is missing in."""
        found = self._keys if key else self._values
        while path:
            offset = found.get(path, self._values.get(path))
            if offset is not None:
                return self._position(offset)
            path = path[:-1]
        return Position(1, 1)

    def written(self, path: Path) -> str:
        """A value as it stands in the text, to its line's end at most; "" where there is none."""
        offset = self._values.get(path)
        if offset is None:
            return ""
        found = (pattern.match(self._text, offset) for pattern in (*_STRINGS, _SCALAR))
        return next(match[0] for match in found if match is not None).partition("\n")[0].strip()

    def _position(self, offset: int) -> Position:
        line = bisect_right(self._lines, offset)
        return Position(line, offset - self._lines[line - 1] + 1)

    def _read(self) -> None:
        table: Path = ()
        self._skip(_BETWEEN)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BETWEEN)

    def _header(self) -> Path:
        begin = self._at
        is_array = self._text.startswith("[[", begin)
        self._at += 2 if is_array else 1
        path: Path = ()
        names = self._dotted_key()
        for name in names[:-1]:
            path = self._newest((*path, name))
        path = (*path, names[-1])
        if is_array:
            self._values.setdefault(path, begin)
            self._tables[path] = self._tables.get(path, 0) + 1
        path = self._newest(path)
        self._keys[path] = self._values[path] = begin
        self._at = self._text.index("]", self._at) + (2 if is_array else 1)
        return path

    def _newest(self, path: Path) -> Path:
        """An array of tables stands for its latest element."""
        count = self._tables.get(path)
        return path if count is None else (*path, count - 1)

    def _pair(self, table: Path) -> None:
        begin = self._at
        path = table
        for name in self._dotted_key():
            path = (*path, name)
            self._keys.setdefault(path, begin)
            self._values.setdefault(path, begin)
        self._at += 1  # the "="
        self._skip(_BLANKS)
        self._value(path)

    def _dotted_key(self) -> list[str]:
        names = []
        while True:
            self._skip(_BLANKS)
            if self._text[self._at] in "\"'":
                quoted = self._take(_STRINGS[2 if self._text[self._at] == '"' else 3])
                names.append(_unescaped(quoted))
            else:
                names.append(self._take(_BARE_KEY))
            self._skip(_BLANKS)
            if not self._text.startswith(".", self._at):
                return names
            self._at += 1

    def _value(self, path: Path) -> None:
        self._values[path] = self._at
        opening = self._text[self._at]
        if opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        elif opening in "\"'":
            strings = (pattern.match(self._text, self._at) for pattern in _STRINGS)
            self._at = next(found.end() for found in strings if found is not None)
        else:
            self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        self._at += 1
        self._skip(_BETWEEN)
        index = 0
        while self._text[self._at] != "]":
            self._value((*path, index))
            self._skip(_BETWEEN)
            index += 1
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        self._skip(_BETWEEN)
        while self._text[self._at] != "}":
            self._pair(path)
            self._skip(_BETWEEN)
        self._at += 1

    def _take(self, pattern: re.Pattern[str]) -> str:
        begin = self._at
        self._skip(pattern)
        return self._text[begin : self._at]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()


def _unescaped(quoted: str) -> str:
    import tomli

    return next(iter(tomli.loads(f"{quoted} = 0")))
