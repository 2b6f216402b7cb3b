"""Reads TOML where the interpreter has no tomllib (before 3.11): what configuration files hold.

Tables, arrays of tables, strings on one line, numbers, booleans, arrays and inline tables. Anything else is
an error, and no error repeats what stood in the file.
"""

import json
import re

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_END_OF_LINE = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_KEY = re.compile(r"[ \t]*([A-Za-z0-9_-]+|\"[^\"\\\n]*\"|'[^'\n]*')[ \t]*(\.?)")
_EQUALS = re.compile(r"=[ \t]*")
_VALUE = re.compile(
    r'"(?:[^"\\\n]|\\[^\n])*"'
    r"|'[^'\n]*'"
    r"|(?:true|false)(?![\w.-])"
    r"|[+-]?\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?(?![\w.:-])"
    r"|[\[{]"
)
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
        try:
            return self._document()
        except (ValueError, RecursionError):
            line = self.text.count("\n", 0, self.at) + 1
            raise ValueError("no valid TOML at line %d" % line)

    def _document(self):
        root = current = {}
        while self._take(_BLANK.match(self.text, self.at)).end() < len(self.text):
            if self._is("[["):
                keys = self._keys()
                tables = self._descend(root, keys[:-1]).setdefault(keys[-1], [])
                if not isinstance(tables, list) or (tables and not isinstance(tables[-1], dict)):
                    raise ValueError
                current = {}
                tables.append(current)
                self._need("]]")
            elif self._is("["):
                current = self._descend(root, self._keys())
                self._need("]")
            else:
                self._pair(current)
            self._take(_END_OF_LINE.match(self.text, self.at))
        return root

    def _descend(self, parent, keys):
        for key in keys:
            parent = parent.setdefault(key, {})
            if isinstance(parent, list) and parent:
                parent = parent[-1]
            if not isinstance(parent, dict):
                raise ValueError
        return parent

    def _pair(self, parent):
        keys = self._keys()
        self._take(_EQUALS.match(self.text, self.at))
        target = self._descend(parent, keys[:-1])
        if keys[-1] in target:
            raise ValueError
        target[keys[-1]] = self._value()

    def _keys(self):
        keys, more = [], True
        while more:
            word, more = self._take(_KEY.match(self.text, self.at)).groups()
            keys.append(word[1:-1] if word[0] in "\"'" else word)
        return keys

    def _value(self):
        word = self._take(_VALUE.match(self.text, self.at)).group()
        if word == "[":
            return self._until("]", [], lambda values: values.append(self._value()))
        if word == "{":
            return self._until("}", {}, self._pair)
        if word[0] == '"':
            text = json.loads(word, strict=False)
            text.encode("utf-8")  # half a surrogate pair is no character
            return text
        if word[0] == "'":
            return word[1:-1]
        if word in ("true", "false"):
            return word == "true"
        digits = word.replace("_", "")
        return float(digits) if re.search("[.eE]", digits) else int(digits)

    def _until(self, mark, made, take):
        """An array or an inline table. take(made) reads one more part of it."""
        self._take(_BLANK.match(self.text, self.at))
        while not self._is(mark):
            take(made)
            if not self._is(","):
                self._need(mark)
                break
        return made

    def _is(self, mark):
        """Whether the mark comes next, then taken, with what is blank around it."""
        begins = _BLANK.match(self.text, self.at).end()
        if not self.text.startswith(mark, begins):
            return False
        self.at = begins + len(mark)
        if mark not in ("]", "]]", "}"):  # behind these a line may end
            self._take(_BLANK.match(self.text, self.at))
        return True

    def _need(self, mark):
        if not self._is(mark):
            raise ValueError

    def _take(self, match):
        """Go behind the match, which has to be there."""
        if match is None:
            raise ValueError
        self.at = match.end()
        return match
