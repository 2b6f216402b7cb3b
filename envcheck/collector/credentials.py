"""Takes credentials out of what configuration files and variables hold, before anything keeps them."""

import re

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
