"""Takes out of a document what should not leave the machine: one value, one token, everywhere."""

import re
from urllib.parse import unquote

from .credentials import mask

_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_SHORT_UUID = re.compile(
    r"(?<![0-9A-Za-z])(GPU|MIG)-([0-9A-Fa-f]{6,8}(?:-[0-9A-Fa-f]{0,12}){0,4})(?![0-9A-Za-z<-])"
)
# Where an absolute path begins: also behind "file://", needless slashes and WSL's drives, which stay as they
# are, but not at the host of a URL.
_BEFORE_PATH = r"((?<![\w.<>/-])(?!(?<=:)//[^/])/*|(?<=file://localhost)|(?<=/mnt/[a-z]))"
_AFTER_PATH = r"(?=$|[/\s:;,\"'=)\]])"
_HOME = re.compile(_BEFORE_PATH + r"(/(?:home|Users)/(?!<)[^/\s:;,\"'=<>]+)" + _AFTER_PATH)
_TOKEN = re.compile(r"<(?:uuid|serial|host|user|home)-(\d{1,9})>")
# Characters that are written otherwise: in URLs, and in JSON, C and Python strings.
_ESCAPED = re.compile(r"\\(?:u(?![Dd][89A-Fa-f])([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([nrt])|/)")
_PARTS = re.compile(r"([\s\"']+)")
_LAYERS = 8  # of escapes around each other

# Names that name nobody, and that stand in too many other places to be replaced there.
_NOBODY = frozenset(
    (
        "root user ubuntu debian admin nvidia docker jovyan nobody localhost host vm gpu cuda "
        "python tensorflow linux server node worker none"
    ).split()
)

# Words of this field that are people's names, too: in a GPU's name they are no user's.
_OF_THE_FIELD = frozenset(
    (
        "tesla kepler maxwell pascal volta turing ampere ada lovelace hopper grace blackwell "
        "rubin vera geforce quadro titan max super laptop edition generation jetson orin xavier "
        "thor spark triton torch jax keras conda"
    ).split()
)

_OF_HOMES = frozenset(("home", "homes", "users", "people"))
_SERIAL_KEYS = frozenset(("serial", "serial_number", "board_serial"))
_NAME_KEYS = frozenset(("hostname", "user", "owner", "group"))
_FREE = "evidence"  # words in it are none of the schema's
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
        # A home need not be called like its user, and what it is called names somebody, too.
        names += [(name, "user") for name in _once(_called(home) for _h, _u, home in everywhere)]
        self._names = {
            name.lower(): kind
            for name, kind in reversed(names)
            if len(name) > 2 and name.lower() not in _NOBODY
        }
        self._patterns = [
            (
                re.compile(r"(?i)(?<![\w.<-])" + re.escape(name) + r"(?![\w>-])"),
                self._host if self._names[name] == "host" else self._user,
            )
            for name in _once(self._names)
            if name not in _OF_THE_FIELD
        ]
        homes = _once(home.rstrip("/") for _host, _user, home in everywhere)
        homes = [re.escape(home) for home in homes if len(home) > 1]
        self._home_pattern = (
            re.compile("%s(%s)%s" % (_BEFORE_PATH, "|".join(homes), _AFTER_PATH)) if homes else None
        )
        self._longer = {}  # a shortened UUID and the longest that begins with it

    def redact(self, document):
        """A copy of the JSON document, redacted."""
        strings = [mask(text) for text in _strings(document)]
        for text in strings:
            for number in _TOKEN.findall(text):
                self._highest = max(self._highest, int(number))
        # Whole UUIDs first: a shortened one then finds the token of the one that it means.
        for text in strings:
            for uuid in _UUID.findall(text):
                self._token("uuid", uuid.lower())
        self._longer = _longer_ones(
            [value for kind, value in self._tokens if kind == "uuid"]
            + [found[1].lower() for text in strings for found in _SHORT_UUID.findall(text)]
        )
        return self._walk(document, "")

    def _walk(self, value, key):
        if isinstance(value, dict):
            inside = _FREE if key == _FREE else ""
            return {self._text(k, ""): self._walk(v, inside or k) for k, v in value.items()}
        if isinstance(value, list):
            return [self._walk(item, key) for item in value]
        if key in _SERIAL_KEYS and isinstance(value, int) and value and value is not True:
            return self._token("serial", str(value))  # of another package's probe
        return self._text(value, key) if isinstance(value, str) else value

    def _text(self, text, key):
        text = mask(text)
        if key in _SERIAL_KEYS and text not in _EMPTY and not _TOKEN.match(text):
            return self._token("serial", text)
        # A string that is nothing but a name is one only where names are kept: elsewhere it may be a word of
        # the schema ("vm", "docker").
        kind = self._names.get(text.lower())
        if kind is not None and "." not in text:
            free = key == _FREE and text.lower() not in _OF_THE_FIELD
            return self._token(kind, text) if free or key in _NAME_KEYS else text
        text = self._words(text)
        if "%" not in text and "\\" not in text:
            return text
        return "".join(self._escaped(part) for part in _PARTS.split(text))

    def _escaped(self, part):
        """A word that may say with escapes ("%2Fhome%2Fann") what has a token: then without them."""
        plain = part
        for _layer in range(_LAYERS):
            plain, before = _unescaped(plain), plain
            if plain == before:
                break
        redacted = plain if plain == part else self._words(mask(plain))
        return part if redacted == plain else redacted

    def _words(self, text):
        text = _UUID.sub(lambda match: self._token("uuid", match.group().lower()), text)
        text = _SHORT_UUID.sub(self._short_uuid, text)
        if self._home_pattern is not None:
            text = self._home_pattern.sub(self._home, text)
        text = _HOME.sub(self._home, text)
        for pattern, named in self._patterns:
            text = pattern.sub(named, text)
        return text

    def _host(self, match):
        return self._token("host", match.group())

    def _user(self, match):
        return self._token("user", match.group())

    def _home(self, match):
        return match.group(1) + self._token("home", match.group(2))

    def _short_uuid(self, match):
        short = match.group(2).lower()
        return "%s-%s" % (match.group(1), self._token("uuid", self._longer.get(short, short)))

    def _token(self, kind, value):
        token = self._tokens.get((kind, value))
        if token is None:
            self._highest += 1
            token = "<%s-%d>" % (kind, self._highest)
            self._tokens[(kind, value)] = token
            self.values[token] = value
        return token


def _unescaped(text):
    return _ESCAPED.sub(_character, unquote(text))


def _character(match):
    if match.group(3):  # a line's end or a tab
        return " "
    return chr(int(match.group(1) or match.group(2) or "2f", 16))


def _once(names):
    """Each of them once, the longest first."""
    return sorted(set(names), key=lambda name: (-len(name), name))


def _called(home):
    """What a home is called, where homes lie; "" elsewhere ("/workspace" names nobody)."""
    parent, _slash, name = home.rstrip("/").rpartition("/")
    return name if parent.rpartition("/")[2].lower() in _OF_HOMES else ""


def _longer_ones(uuids):
    """{a shortened UUID: the longest of them that begins with it}."""
    longer = {}
    after = ""
    for uuid in sorted(set(uuids), reverse=True):  # what begins with it comes right before it
        if after.startswith(uuid):
            longer[uuid] = longer.get(after, after)
        after = uuid
    return longer


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
