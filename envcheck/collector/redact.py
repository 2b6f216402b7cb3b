"""Takes out of a document what should not leave the machine: one value, one token, everywhere.

Credentials are removed and forgotten. Host name, user name, home directories, serial numbers and UUIDs
become tokens; ``values`` tells what each token stands for, so that a live report can show the real
thing. Tokens match none of the patterns: redacting twice changes nothing.
"""

import re

from .credentials import mask

_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_SHORT_UUID = re.compile(
    r"(?<![0-9A-Za-z])(GPU|MIG)-([0-9A-Fa-f]{6,8}(?:-[0-9A-Fa-f]{0,12}){0,4})(?![0-9A-Za-z<-])"
)
_BEFORE_PATH = r"(?<![\w.<>/-])"
_HOME = re.compile(_BEFORE_PATH + r"/(?:home|Users)/(?!<)[^/\s:;,\"'=<>]+(?=$|[/\s:;,\"'=)\]])")
_TOKEN = re.compile(r"<(?:uuid|serial|host|user|home)-(\d+)>")

# Names that name nobody, and that stand in too many other places to be replaced there.
_NOBODY = frozenset(
    (
        "root",
        "user",
        "ubuntu",
        "debian",
        "admin",
        "nvidia",
        "docker",
        "jovyan",
        "nobody",
        "localhost",
        "host",
        "vm",
        "gpu",
        "cuda",
        "python",
        "tensorflow",
        "linux",
        "server",
        "node",
        "worker",
        "none",
    )
)

_SERIAL_KEYS = frozenset(("serial",))
_NAME_KEYS = frozenset(("hostname", "user", "owner", "group"))
_EMPTY = frozenset(("", "N/A", "0", "None"))


class Redactor(object):
    """Holds which token stands for which value. Use one for all documents of a Snapshot."""

    def __init__(self, host="", user="", home="", others=()):
        """others: [(host, user, home)] of what documents from elsewhere may hold, a container's inside."""
        self.values = {}
        self._tokens = {}
        self._highest = 0
        everywhere = [(host, user, home)] + list(others)
        hosts = {name for name, _user, _home in everywhere}
        hosts |= {name.partition(".")[0] for name in hosts}
        names = [(name, "host") for name in sorted(hosts, key=lambda name: (-len(name), name))]
        names += [(name, "user") for name in _once(user for _host, user, _home in everywhere)]
        self._names = [
            (name, kind) for name, kind in names if len(name) > 2 and name.lower() not in _NOBODY
        ]
        self._patterns = [
            (re.compile(r"(?<![\w.<-])" + re.escape(name) + r"(?![\w>-])"), name, kind)
            for name, kind in self._names
        ]
        homes = _once(home.rstrip("/") for _host, _user, home in everywhere)
        homes = [re.escape(home) for home in homes if len(home) > 1]
        self._home_pattern = (
            re.compile(_BEFORE_PATH + "(?:%s)" % "|".join(homes) + r"(?=$|[/\s:;,\"'=)\]])")
            if homes
            else None
        )

    def redact(self, document):
        """A copy of the JSON document, redacted."""
        strings = list(_strings(document))
        for text in strings:
            for number in _TOKEN.findall(text):
                self._highest = max(self._highest, int(number))
        # Whole UUIDs first: a shortened one then finds the token of the one that it means.
        for text in strings:
            for uuid in _UUID.findall(text):
                self._token("uuid", uuid.lower())
        return self._walk(document, "")

    def _walk(self, value, key):
        if isinstance(value, dict):
            return {self._text(k, ""): self._walk(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self._walk(item, key) for item in value]
        if isinstance(value, str):
            return self._text(value, key)
        return value

    def _text(self, text, key):
        text = mask(text)
        if key in _SERIAL_KEYS and text not in _EMPTY and not _TOKEN.match(text):
            return self._token("serial", text)
        text = _UUID.sub(lambda match: self._token("uuid", match.group().lower()), text)
        text = _SHORT_UUID.sub(self._short_uuid, text)
        if self._home_pattern is not None:
            text = self._home_pattern.sub(lambda match: self._token("home", match.group()), text)
        text = _HOME.sub(lambda match: self._token("home", match.group()), text)
        for pattern, name, kind in self._patterns:
            # A string that is nothing but the name is a name only where names are kept: elsewhere it
            # may be a word of the schema ("vm", "docker").
            if text != name or key in _NAME_KEYS:
                text = pattern.sub(self._token(kind, name) if pattern.search(text) else "", text)
        return text

    def _short_uuid(self, match):
        prefix = match.group(2).lower()
        for (kind, value), token in self._tokens.items():
            if kind == "uuid" and value.startswith(prefix):
                return "%s-%s" % (match.group(1), token)
        return "%s-%s" % (match.group(1), self._token("uuid", prefix))

    def _token(self, kind, value):
        token = self._tokens.get((kind, value))
        if token is None:
            self._highest += 1
            token = "<%s-%d>" % (kind, self._highest)
            self._tokens[(kind, value)] = token
            self.values[token] = value
        return token


def _once(names):
    """Each of them once, the longest first."""
    return sorted(set(names), key=lambda name: (-len(name), name))


def scrub(document):
    """A copy of the JSON document without credentials, and with everything else."""
    if isinstance(document, dict):
        return {mask(k): scrub(v) for k, v in document.items()}
    if isinstance(document, list):
        return [scrub(item) for item in document]
    return mask(document) if isinstance(document, str) else document


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            for text in _strings(item):
                yield text
    elif isinstance(value, list):
        for item in value:
            for text in _strings(item):
                yield text
