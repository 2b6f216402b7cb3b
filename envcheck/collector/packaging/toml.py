"""Reads TOML where the interpreter has no tomllib (before 3.11): what configuration files hold.

Tables, arrays of tables, strings, integers, booleans, arrays and inline tables. Anything else is an error,
and no error repeats what stood in the file.
"""

import re

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_END_OF_LINE = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_KEY = re.compile(r"[ \t]*([A-Za-z0-9_-]+|\"[^\"\\\n]*\"|'[^'\n]*')[ \t]*(\.?)")
_EQUALS = re.compile(r"=[ \t]*")
_VALUE = re.compile(
    r'"""\n?(?P<long>(?:[^"\\]|\\[\s\S]|"(?!""))*)"""'
    r"|'''\n?(?P<long_raw>(?:[^']|'(?!''))*)'''"
    r'|"(?P<text>(?:[^"\\\n]|\\[^\n])*)"'
    r"|'(?P<raw>[^'\n]*)'"
    r"|(?P<flag>true|false)(?![\w.-])"
    r"|(?P<number>[+-]?\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)(?![\w.:-])"
    r"|(?P<open>[\[{])"
)
_ESCAPE = re.compile(
    r"\\(?:([btnfr\"\\e])|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([ \t]*\n)\s*|)"
)
_ESCAPES = dict(zip('btnfr"\\e', '\b\t\n\f\r"\\\x1b'))
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
        found = re.search(r"at line (\d+)", str(error))
        raise ValueError("no valid TOML" + (" " + found.group() if found else ""))


def table(parent, *names):
    """The table at a path of names; {} where there is none."""
    for name in names:
        parent = parent.get(name)
        if not isinstance(parent, dict):
            return {}
    return parent


class Reader(object):
    """Holds the text and how far it was read."""

    def __init__(self, text):
        self.text = text.replace("\r\n", "\n")
        self.at = 0

    def document(self):
        root = current = {}
        while True:
            self._take(_BLANK.match(self.text, self.at))
            if self.at >= len(self.text):
                return root
            if self._is("[["):
                keys = self._keys()
                current = self._append(self._descend(root, keys[:-1]), keys[-1])
                self._need("]]")
            elif self._is("["):
                current = self._descend(root, self._keys())
                self._need("]")
            else:
                self._pair(current, 0)
            self._take(_END_OF_LINE.match(self.text, self.at))

    def _append(self, parent, key):
        tables = parent.setdefault(key, [])
        if not isinstance(tables, list) or (tables and not isinstance(tables[-1], dict)):
            self._fail()
        tables.append({})
        return tables[-1]

    def _descend(self, parent, keys):
        for key in keys:
            parent = parent.setdefault(key, {})
            if isinstance(parent, list) and parent:
                parent = parent[-1]
            if not isinstance(parent, dict):
                self._fail()
        return parent

    def _pair(self, parent, depth):
        keys = self._keys()
        self._take(_EQUALS.match(self.text, self.at))
        target = self._descend(parent, keys[:-1])
        if keys[-1] in target:
            self._fail()
        target[keys[-1]] = self._value(depth)

    def _keys(self):
        keys, more = [], True
        while more:
            word, more = self._take(_KEY.match(self.text, self.at)).groups()
            keys.append(word[1:-1] if word[0] in "\"'" else word)
        return keys

    def _value(self, depth):
        match = self._take(_VALUE.match(self.text, self.at))
        kind, text = match.lastgroup, match.group(match.lastgroup)
        if kind == "flag":
            return text == "true"
        if kind == "number":
            digits = text.replace("_", "")
            return float(digits) if re.search("[.eE]", digits) else int(digits)
        if kind == "open":
            if depth >= _DEEP:
                self._fail()
            return self._array(depth) if text == "[" else self._inline(depth)
        return _ESCAPE.sub(self._escaped, text) if kind in ("text", "long") else text

    def _array(self, depth):
        values = []
        self.at = _BLANK.match(self.text, self.at).end()
        while not self._is("]"):
            values.append(self._value(depth + 1))
            if not self._is(","):
                self._need("]")
                break
        return values

    def _inline(self, depth):
        made = {}
        if self._is("}"):
            return made
        while True:
            self._pair(made, depth + 1)
            if not self._is(","):
                self._need("}")
                return made

    def _escaped(self, match):
        short, two, four, eight, line_end = match.groups()
        if line_end:
            return ""
        if short:
            return _ESCAPES[short]
        number = int(two or four or eight or "110000", 16)
        return chr(number) if number < 0x110000 else self._fail()

    def _is(self, mark):
        """Whether the mark comes next, then taken, with what is blank around it."""
        begins = _BLANK.match(self.text, self.at).end()
        if not self.text.startswith(mark, begins):
            return False
        inside = mark not in ("]", "]]", "}")  # behind these a line may end
        self.at = begins + len(mark)
        self.at = _BLANK.match(self.text, self.at).end() if inside else self.at
        return True

    def _need(self, mark):
        if not self._is(mark):
            self._fail()

    def _take(self, match):
        """Go behind the match, which has to be there."""
        self.at = (match or self._fail()).end()
        return match

    def _fail(self):
        raise ValueError("no valid TOML at line %d" % (self.text.count("\n", 0, self.at) + 1))
