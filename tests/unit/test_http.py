"""Addresses, pauses, credentials and sentences of HTTP, without a network."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests
import urllib3.exceptions as u3

from envcheck.exit_codes import ExitCode
from envcheck.install.network import addresses, errors
from envcheck.install.network.credentials import Credentials
from envcheck.install.network.errors import HttpError
from envcheck.install.network.session import Session

SECRET = "https://user:pass%40word@index.example:8443/simple/?token=hidden#part"


def test_attempts_are_counted_and_a_server_s_own_pause_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    errors_ = [HttpError("cut", again=True)] * 9
    errors_[1] = HttpError("later", again=True, headers={"Retry-After": "40"})

    def fail() -> None:
        raise errors_.pop(0)

    session = Session()
    monkeypatch.setattr(session._stop, "wait", waited.append)
    with pytest.raises(HttpError, match="cut"):
        session.retried(fail, 5)
    assert waited == [0, 40.0, 2.0, 4.0] and len(errors_) == 4


@pytest.mark.parametrize(
    "error", [HttpError("final"), HttpError("later", again=True, headers={"Retry-After": "20000"})]
)
def test_what_is_not_tried_again(error: HttpError) -> None:
    tried: list[int] = []

    def fail() -> None:
        tried.append(1)
        raise error

    with pytest.raises(HttpError):
        Session(pause=0.0).retried(fail)
    assert len(tried) == 1


def wait(text: str) -> float:
    return HttpError("later", headers={"Retry-After": text}).wait


@pytest.mark.parametrize(
    "text",
    ["soon", "²", "", "-1", "9" * 5000, "Fri, 31 Dec 99999 23:59:59 GMT", "1e9", "\x00", "٣"],
)
def test_a_retry_after_that_is_none(text: str) -> None:
    assert 0 <= wait(text) <= 21600


def wrapped(inner: BaseException) -> requests.ConnectionError:
    """As requests hands it on: with the URL, password and all, in it."""
    pool = SimpleNamespace(host="index.example", port=443)
    return requests.ConnectionError(u3.MaxRetryError(pool, SECRET, inner))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (wrapped(u3.NewConnectionError(None, SECRET)), "cannot be connected to"),  # type: ignore[arg-type]
        (requests.ConnectTimeout(SECRET), "cannot be connected to"),
        (requests.ReadTimeout(SECRET), "does not answer any more"),
        (u3.ProtocolError(SECRET, ConnectionResetError(104, "Connection reset by peer")), "reset"),
        (wrapped(socket.gaierror(-2, "Name or service not known")), "has no address in DNS: Name"),
        (requests.exceptions.InvalidURL(SECRET), "is not a URL that can be asked"),
        (wrapped(u3.ProxyError(SECRET, OSError(111, "refused"))), "the proxy that is set for"),
        (
            wrapped(u3.ProxyError(SECRET, OSError("Tunnel connection failed: 407 Proxy Auth"))),
            "set for index.example:8443 refuses the connection: status 407",
        ),
        (wrapped(u3.SSLError(ssl.SSLError(1, "[SSL] wrong version"))), "TLS with index.example"),
        (requests.exceptions.InvalidSchema("SOCKS " + SECRET), "a proxy is http:// or https://"),
        (ValueError(SECRET), "cut the connection"),
    ],
)
def test_exceptions_become_sentences_without_secrets(error: Exception, expected: str) -> None:
    found = errors.of_exception(SECRET, error)
    text = f"{found} {found.hint} {found.args}"
    assert expected in text and "index.example" in text
    assert not [secret for secret in ("pass%40", "pass@", "user:", "hidden") if secret in text]
    assert found.exit_code == ExitCode.COULD_NOT_LOOK


def test_credentials_hold_for_one_host() -> None:
    known = Credentials({})
    known.learn("https://user:word@index.example/simple/")
    assert known.known("https://index.example/files/w.whl") == ("user", "word")
    for other in ("https://index.example:8443/", "http://index.example/", "https://x.example/"):
        assert known.known(other) is None


def test_credentials_from_the_environment_stand_in_for_the_url_s() -> None:
    environ = {"UV_INDEX_MY_INDEX_USERNAME": "env", "UV_INDEX_MY_INDEX_PASSWORD": "word"}
    known = Credentials(environ)
    known.learn("https://user:other@index.example/simple/", "my-index")
    assert known.known("https://index.example/simple/") == ("env", "word")


def test_netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine index.example login user password word\n")
    monkeypatch.setenv("NETRC", str(netrc))
    known = Credentials({})
    assert known.known("https://index.example/a") == ("user", "word")
    assert known.known("https://other.example/a") is None
    known.learn("https://somebody@index.example/")  # whom the file does not know
    assert known.known("https://index.example/a") == ("somebody", "")
    netrc.write_text("machine ? !!! nonsense")
    assert Credentials({}).known("https://index.example/a") is None


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
