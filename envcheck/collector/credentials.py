"""Knows credentials where it sees them, and takes them out before anything keeps them.

``strip`` is for settings, and tells whether there were any; ``mask`` is the net under everything else.
"""

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
        re.compile(r"(?i)\b(authorization:\s*)(?:basic|bearer|token)?\s*(?!<)[^\s\"']+"),
        r"\1" + SECRET,
    ),
    # what well-known services issue
    (
        re.compile(
            r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|nvapi-[\w-]{16,}"
            r"|pypi-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}"
            r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,})"
        ),
        SECRET,
    ),
)

# A setting or a variable of such a name holds a secret, whatever it looks like.
SECRET_NAME = re.compile(
    r"(?i)secret|token|passw|credential|username|apikey|(?:^|[_-])key(?:$|[_-])"
)
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<authority>[^\s/?#]*)(?P<rest>\S*)")
_NO_SCHEME = re.compile(r"(?m)(^|(?<=[\s=]))[^\s:/@]+:[^\s@]*@(?=[\w.-]+:\d)")
_PARAMETER = re.compile(
    r"(?i)([?&;#][\w.-]*(?:token|key|secret|passw\w*|sig|signature|auth|credential)"
    r"[\w.-]*=)[^&;\s]+"
)
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
        return match.group("scheme") + host + _OPAQUE.sub("***", plain)

    def parameter(match):
        found.append(True)
        return match.group(1)

    def bare(match):
        found.append(True)
        return match.group(1)

    text = _URL.sub(url, text)
    text = _NO_SCHEME.sub(bare, text)
    return text, bool(found)


def mask(text):
    """The text with every credential in it replaced by SECRET."""
    for pattern, replacement in _CREDENTIALS:
        text = pattern.sub(replacement, text)
    return text
