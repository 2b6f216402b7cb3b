"""Knows credentials where it sees them, and takes them out before anything keeps them."""

import re

SECRET = "<credentials>"

_CREDENTIALS = (
    # user:password@ and token@ in a URL
    (re.compile(r"(?<=://)[^/\s@<>\"']+(?=@)"), SECRET),
    # ?token=... &api_key=... password=...
    (
        re.compile(
            r"(?i)(?<=[?&;\s])((?:access_?|auth_?|api_?|private_?)?(?:token|key|secret|password"
            r"|passwd|signature|sig)=)(?!<)[^&\s\"']+"
        ),
        r"\1" + SECRET,
    ),
    (
        re.compile(r"(?i)\b(authorization:\s*)(?:(?:basic|bearer|token)\s+)?(?!<)[^\s\"']+"),
        r"\1" + SECRET,
    ),
    # what well-known services issue
    (
        re.compile(
            r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|nvapi-[\w-]{16,}"
            r"|pypi-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16})"
        ),
        SECRET,
    ),
)

# In a JSON Web Token three parts of these characters stand between dots, and the first begins with "eyJ".
_MAY_HOLD_JWT = re.compile(r"[\w.-]{20,}")
_JWT_BEGINS = re.compile(r"\beyJ")
_JWT_PARTS = (11, 8, 4)  # characters at least

# A setting or a variable of such a name holds a secret, whatever it looks like.
SECRET_NAME = re.compile(
    r"(?i)secret|token|passw|credential|username|apikey|(?:^|[_-])key(?:$|[_-])"
)
_URL = re.compile(r"(?<=[A-Za-z0-9+.-])://(?P<authority>[^\s/?#]*)(?P<rest>\S*)")
_WORD = re.compile(r"\S+")
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d")
_UP_TO_MARK = re.compile(r"([^:/]*)([:/]|\Z)")
_PARAMETER = re.compile(r"([?&;#])([\w.-]+)=[^&;\s]+")
_SECRET_PARAMETER = re.compile(r"(?i)token|key|secret|passw|sig|auth|credential")
# Some package hosts take a token as a part of the path. A find-links folder may look the same, so such
# a part is masked and not reported.
_OPAQUE = re.compile(r"(?<=/)(?=[A-Za-z0-9]*\d)(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{16,}(?=/)")


def strip(text):
    """(text without credentials, whether there were any). Understands URLs and user:password@host:port."""
    found = []

    def url(match):
        authority, rest = match.group("authority"), match.group("rest")
        _user, at, host = authority.rpartition("@")
        port = authority.rpartition(":")[2]
        if not at and ":" in authority and not port.isdecimal() and "@" in rest:
            # A password with an unescaped slash: what follows the last @ is the host.
            host, rest = "", rest.rpartition("@")[2]
            at = "@"
        if at:
            found.append(True)
        plain = _PARAMETER.sub(parameter, rest)
        return "://" + host + _OPAQUE.sub("***", plain)

    def parameter(match):
        if not _SECRET_PARAMETER.search(match.group(2)):
            return match.group()
        found.append(True)
        return "%s%s=" % (match.group(1), match.group(2))

    def word(match):
        plain = _without_scheme(match.group())
        if plain != match.group():
            found.append(True)
        return plain

    text = _URL.sub(url, text)
    if "@" in text:
        text = _WORD.sub(word, text)
    return text, bool(found)


def _without_scheme(word):
    """A word without user:password@ before a host:port, at its beginning or after a "="."""
    pieces = word.split("@")
    kept = []
    for number, piece in enumerate(pieces[:-1]):
        begins = None
        if _HOST_AND_PORT.match(pieces[number + 1]):
            begins = _user_begins(piece, number == 0)
        kept.append(piece + "@" if begins is None else piece[:begins])
    return "".join(kept) + pieces[-1]


def _user_begins(text, at_the_beginning):
    """Where in "…=user:password" the user's name begins, or None."""
    for match in _UP_TO_MARK.finditer(text):
        if match.group(2) != ":" or not match.group(1):
            continue
        if match.start() == 0 and at_the_beginning:
            return 0
        equals = match.group(1).find("=")
        if 0 <= equals < len(match.group(1)) - 1:
            return match.start() + equals + 1
    return None


def mask(text):
    """The text with every credential in it replaced by SECRET."""
    for pattern, replacement in _CREDENTIALS:
        text = pattern.sub(replacement, text)
    return _MAY_HOLD_JWT.sub(_without_jwt, text) if "eyJ" in text else text


def _without_jwt(match):
    parts = match.group().split(".")
    kept = []
    at = 0
    while at < len(parts):
        begins = _JWT_BEGINS.search(parts[at])
        if begins and _is_jwt(parts[at : at + 3], begins.start()):
            kept.append(parts[at][: begins.start()] + SECRET)
            at += 3
        else:
            kept.append(parts[at])
            at += 1
    return ".".join(kept)


def _is_jwt(parts, begins):
    lengths = [len(part) for part in parts]
    lengths[0] -= begins
    return len(lengths) == 3 and all(n >= least for n, least in zip(lengths, _JWT_PARTS))
