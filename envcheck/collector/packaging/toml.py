"""Reads the TOML that uv's configuration is written in, where the interpreter has no tomllib (before 3.11).

Tables, arrays of tables, strings, integers, booleans, arrays and inline tables. Anything else is an error,
and no error repeats what stood in the file.
"""

import re

_KEY = re.compile(r"[A-Za-z0-9_-]+|\"[^\"\\\n]*\"|'[^'\n]*'")
_NUMBER = re.compile(r"[+-]?\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?(?![\w.:-])")
_ESCAPES = {
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "f": "\f",
    "r": "\r",
    '"': '"',
    "\\": "\\",
    "e": "\x1b",
}
_DEEP = 50  # nested arrays and inline tables
_DOTS = 2000  # in a line: tomllib takes quadratic time for a key of so many parts


def loads(text):
    """The document as dicts, lists, strings, numbers and booleans. Raises ValueError naming the line."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _DOTS:
            raise ValueError("more than %d dots in line %d" % (_DOTS, number))
    try:
        import tomllib
    except ImportError:
        return Reader(text).document()
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        if line is None:
            match = re.search(r"at line (\d+)", str(error))
            line = match.group(1) if match else None
        raise ValueError("no valid TOML" if line is None else "no valid TOML at line %s" % line)


class Reader(object):
    """Holds the text and how far it was read."""

    def __init__(self, text):
        self.text = text.replace("\r\n", "\n")
        self.at = 0

    def document(self):
        root = {}
        table = root
        while True:
            self._blank(lines=True)
            if self.at >= len(self.text):
                return root
            if self._take("[["):
                table = self._array_of_tables(root, self._keys())
                self._expect("]]")
            elif self._take("["):
                table = self._descend(root, self._keys())
                self._expect("]")
            else:
                self._pair(table, 0)
            self._end_of_line()

    def _array_of_tables(self, root, keys):
        parent = self._descend(root, keys[:-1])
        tables = parent.setdefault(keys[-1], [])
        if not isinstance(tables, list) or (tables and not isinstance(tables[-1], dict)):
            self._fail()
        tables.append({})
        return tables[-1]

    def _descend(self, table, keys):
        for key in keys:
            table = table.setdefault(key, {})
            if isinstance(table, list) and table:
                table = table[-1]
            if not isinstance(table, dict):
                self._fail()
        return table

    def _pair(self, table, depth):
        keys = self._keys()
        self._expect("=")
        target = self._descend(table, keys[:-1])
        if keys[-1] in target:
            self._fail()
        target[keys[-1]] = self._value(depth)

    def _keys(self):
        keys = []
        while True:
            self._blank()
            match = _KEY.match(self.text, self.at)
            if match is None:
                self._fail()
            self.at = match.end()
            keys.append(match.group().strip("\"'") if match.group()[0] in "\"'" else match.group())
            self._blank()
            if not self._take("."):
                return keys

    def _value(self, depth):
        if depth > _DEEP:
            self._fail()
        self._blank()
        for quote in ('"""', "'''"):
            if self._take(quote):
                return self._long_string(quote)
        for quote in "\"'":
            if self._take(quote):
                return self._string(quote)
        if self._take("["):
            return self._array(depth)
        if self._take("{"):
            return self._inline_table(depth)
        for word, value in (("true", True), ("false", False)):
            if re.compile(word + r"(?![\w.-])").match(self.text, self.at):
                self.at += len(word)
                return value
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            self._fail()
        self.at = match.end()
        digits = match.group().replace("_", "")
        return float(digits) if re.search("[.eE]", digits) else int(digits)

    def _array(self, depth):
        values = []
        while True:
            self._blank(lines=True)
            if self._take("]"):
                return values
            values.append(self._value(depth + 1))
            self._blank(lines=True)
            if not self._take(","):
                self._expect("]")
                return values

    def _inline_table(self, depth):
        table = {}
        self._blank()
        if self._take("}"):
            return table
        while True:
            self._pair(table, depth + 1)
            self._blank()
            if not self._take(","):
                self._expect("}")
                return table

    def _string(self, quote):
        end = self.text.find("\n", self.at)
        line_end = len(self.text) if end < 0 else end
        return self._until(quote, line_end)

    def _long_string(self, quote):
        if self.text.startswith("\n", self.at):
            self.at += 1
        return self._until(quote, len(self.text))

    def _until(self, quote, limit):
        parts = []
        while self.at < limit:
            if self.text.startswith(quote, self.at):
                self.at += len(quote)
                return "".join(parts)
            character = self.text[self.at]
            self.at += 1
            parts.append(self._escape() if character == "\\" and quote[0] == '"' else character)
        return self._fail()

    def _escape(self):
        kind = self.text[self.at : self.at + 1]
        self.at += 1
        if kind in _ESCAPES:
            return _ESCAPES[kind]
        length = {"x": 2, "u": 4, "U": 8}.get(kind)
        if length is not None:
            digits = self.text[self.at : self.at + length]
            if re.match(r"[0-9A-Fa-f]{%d}\Z" % length, digits) and int(digits, 16) < 0x110000:
                self.at += length
                return chr(int(digits, 16))
        folded = re.compile(r"[ \t\n]*\n\s*" if kind == "\n" else r"[ \t]*\n\s*")
        match = folded.match(self.text, self.at - 1)
        if match is None:
            self._fail()
        self.at = match.end()
        return ""

    def _blank(self, lines=False):
        pattern = r"(?:[ \t\n]|#[^\n]*)*" if lines else r"[ \t]*"
        self.at = re.compile(pattern).match(self.text, self.at).end()

    def _end_of_line(self):
        match = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)").match(self.text, self.at)
        if match is None:
            self._fail()
        self.at = match.end()

    def _take(self, mark):
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def _expect(self, mark):
        self._blank()
        if not self._take(mark):
            self._fail()

    def _fail(self):
        raise ValueError("no valid TOML at line %d" % (self.text.count("\n", 0, self.at) + 1))
