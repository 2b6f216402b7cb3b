"""Addresses, credentials, certificates and sentences of HTTP, without a network."""

from __future__ import annotations

from pathlib import Path

import certifi
import pytest

from envcheck.install.network import addresses, troubles, trust
from envcheck.install.network.access import Access

SECRET = "https://user:pass%40word@index.example:8443/simple/?token=hidden#part"


@pytest.mark.parametrize(
    ("words", "expected", "hint"),
    [
        ("cause: tcp connect error\n  cause: Connection refused", "cannot be connected to", ""),
        ("cause: dns error\n cause: failed to lookup", "has no address in DNS", "--offline"),
        ("cause: invalid peer certificate: UnknownIssuer", "cannot be trusted", "SSL_CERT_FILE"),
        ("hint: An index URL could not be queried … (401 Unauthorized)", "(401)", "netrc"),
        ("HTTP status client error (407 Proxy Authentication)", "the proxy", "HTTPS_PROXY"),
        ("HTTP status server error (503 Service Unavailable)", "answers 503", "try again later"),
        ("HTTP status client error (429 Too Many Requests)", "limits the rate", "later"),
        ("HTTP status client error (410 Gone)", "answers 410", ""),
        ("cause: received corrupt message of type InvalidContentType", "TLS", "plain http"),
        ("ReadTimeout ", "does not answer any more", ""),
        ("error reading a body: end of file before message length", "cut the connection", ""),
        (f"error sending request for url ({SECRET}): nobody knows", "cannot be fetched", ""),
    ],
)
def test_words_of_tools_become_sentences_without_secrets(
    words: str, expected: str, hint: str
) -> None:
    found = troubles.explained(SECRET, f"error: Failed to fetch: {SECRET}\n{words}")
    text = f"{found} {found.hint}"
    assert expected in str(found) and hint in found.hint and "index.example:8443" in text
    assert not [secret for secret in ("pass%40", "pass@", "user:", "hidden") if secret in text]


def test_credentials_hold_for_one_host() -> None:
    known = Access(environ={})
    known.learn("https://user:word@index.example/simple/")
    assert known.known("https://index.example/files/w.whl") == ("user", "word")
    for other in ("https://index.example:8443/", "http://index.example/", "https://x.example/"):
        assert known.known(other) is None


def test_credentials_from_the_environment_stand_in_for_the_url_s() -> None:
    environ = {"UV_INDEX_MY_INDEX_USERNAME": "env", "UV_INDEX_MY_INDEX_PASSWORD": "word"}
    known = Access(environ=environ)
    known.learn("https://user:other@index.example/simple/", "my-index")
    assert known.known("https://index.example/simple/") == ("env", "word")


def test_netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine index.example login user password word\n")
    monkeypatch.setenv("NETRC", str(netrc))
    known = Access(environ={})
    assert known.known("https://index.example/a") == ("user", "word")
    assert known.known("https://other.example/a") is None
    known.learn("https://somebody@index.example/")  # whom the file does not know
    assert known.known("https://index.example/a") == ("somebody", "")
    netrc.write_text("machine ? !!! nonsense")
    assert Access(environ={}).known("https://index.example/a") is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://joe:pass/word@index.example/simple", "https://…"),
        ("https://joe:pass#word@index.example/simple", "https://…"),
        ("https://joe:pass?word@index.example/simple", "https://…"),
        ("https://joe:word@index.example:port/simple", "https://…"),
        ("https://joe:word@index.example:8443/@scope/", "https://index.example:8443/@scope/"),
    ],
)
def test_what_cannot_be_taken_apart_is_not_shown(url: str, shown: str) -> None:
    assert addresses.public(url) == shown
    assert "word" not in addresses.typed(url)


def test_what_pip_is_told_is_believed_too_and_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "_SYSTEMS", ())
    own = tmp_path / "own.pem"
    own.write_bytes(b"own")
    environ = {"SSL_CERT_FILE": certifi.where(), "PIP_CONFIG_FILE": "/dev/null"}
    assert trust.certificates(tmp_path, environ) == certifi.where()
    environ |= {"REQUESTS_CA_BUNDLE": str(own), "CURL_CA_BUNDLE": certifi.where()}
    together = trust.certificates(tmp_path, environ | {"PIP_CERT": "/not/there"})
    assert Path(together).read_bytes() == Path(certifi.where()).read_bytes() + b"\nown"
