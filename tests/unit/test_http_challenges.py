"""WWW-Authenticate headers, as registries send them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.install.registry.challenges import parse

BEARER = {"realm": "https://nvcr.io/proxy_auth", "service": "", "scope": "repository:a/b:pull,push"}


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", []),
        ('Bearer realm="https://nvcr.io/proxy_auth",service="",scope="repository:a/b:pull,push"',
         [("bearer", BEARER)]),
        ('BEARER Realm = "https://nvcr.io/proxy_auth" , service="", scope="repository:a/b:pull,push"',
         [("bearer", BEARER)]),
        ('Basic realm="a \\"b\\" c"', [("basic", {"realm": 'a "b" c'})]),
        ("Basic realm=tests", [("basic", {"realm": "tests"})]),
        ("Negotiate", [("negotiate", {})]),
        ('Negotiate, Basic realm="x", charset="UTF-8", Bearer realm="y"',
         [("negotiate", {}), ("basic", {"realm": "x", "charset": "UTF-8"}),
          ("bearer", {"realm": "y"})]),
        ('Bearer realm="never ended', [("bearer", {"realm": ""})]),
        ("=,=", []),
    ],
)  # fmt: skip
def test_challenges(header: str, expected: list[tuple[str, dict[str, str]]]) -> None:
    assert [(found.scheme, found.parameters) for found in parse(header)] == expected


@given(st.text(max_size=80))
def test_anything_comes_to_an_end(header: str) -> None:
    parse(header)
