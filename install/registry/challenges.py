"""The WWW-Authenticate header: what a server wants to see before it answers (RFC 9110, section 11)."""

from __future__ import annotations

import re

import msgspec

_SCHEME = re.compile(r"[\s,]*([A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]*)(?=\s|,|$)\s*")
_PARAMETER = re.compile(r"[\s,]*([A-Za-z0-9_-]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^\s,\"]*))")


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    scheme: str  # in lower case: "bearer", "basic"
    parameters: dict[str, str]  # names in lower case


def parse(header: str) -> list[Challenge]:
    """Every challenge in the header, in order; what cannot be understood ends the list."""
    found, at = [], 0
    while at < len(header):
        scheme = _SCHEME.match(header, at)
        if scheme is None:
            break
        at = scheme.end()
        parameters: dict[str, str] = {}
        while (parameter := _PARAMETER.match(header, at)) is not None:
            quoted, plain = parameter[2], parameter[3]
            value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            parameters.setdefault(parameter[1].lower(), value)
            at = parameter.end()
        found.append(Challenge(scheme=scheme[1].lower(), parameters=parameters))
    return found
