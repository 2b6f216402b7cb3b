"""Files over HTTP from loopback servers: redirects, credentials, proxies, certificates."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import certificates
import pytest
from bad_server import CAPTIVE_PORTAL, BadServer, Way

from envcheck.exit_codes import CouldNotLook, PutBack
from envcheck.install import downloads
from envcheck.install.downloads import Downloads
from envcheck.install.lockfile import LockedFile
from envcheck.install.network.access import Access
from envcheck.install.network.fetching import Fetcher

BODY = b"a file" * 1000


@pytest.fixture(autouse=True)
def _nobody_s_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        running.file("/a.whl", BODY)
        yield running


@pytest.fixture
def other() -> Iterator[BadServer]:
    with BadServer() as running:
        running.file("/a.whl", BODY)
        yield running


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[BadServer, Path]]:
    made = certificates.make(tmp_path / "tls")
    with BadServer(tls=(made.certificate, made.key)) as running:
        running.file("/a.whl", BODY)
        yield running, made.authority


def authorization(user: str, word: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{word}".encode()).decode()


def fetched(url: str, tmp_path: Path, *insecure: str) -> bytes:
    access = Access(insecure)
    access.learn(url)
    return b"".join(Fetcher(access, tmp_path).pieces(url))


def error_of(url: str, tmp_path: Path, *insecure: str) -> CouldNotLook:
    with pytest.raises(CouldNotLook) as caught:
        fetched(url, tmp_path, *insecure)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


def locked(server: BadServer, data: bytes = BODY) -> LockedFile:
    sha256 = hashlib.sha256(data).hexdigest()
    return LockedFile(name="a.whl", url=f"{server.url}/a.whl", sha256=sha256, size=len(data))


def test_a_file_that_is_cut_is_fetched_again(server: BadServer) -> None:
    server.behave("/a.whl", Way(cut_after=100), Way(status=502))
    files = Downloads(Access())
    files.fetch([locked(server)])
    assert files.path(locked(server)).read_bytes() == BODY and len(server.seen()) == 3


@pytest.mark.parametrize(
    ("way", "says"),
    [
        (Way(wrong_at=5), "is not the file that was asked for"),
        (Way(status=404), "answers 404"),
        (Way(cut_after=100), "cut the connection"),
        (CAPTIVE_PORTAL, "a network with a login page"),
    ],
)
def test_what_is_not_the_file_is_not_kept(server: BadServer, way: Way, says: str) -> None:
    server.behave("/a.whl", Way(**{**vars(way), "times": None}))
    files = Downloads(Access())
    with pytest.raises(PutBack, match=says):
        files.fetch([locked(server)])
    assert not files.has(locked(server))


def test_a_server_that_trickles_comes_to_an_end(
    server: BadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "SILENCE", 1.0)
    server.behave("/a.whl", Way(rate=1, times=None))
    with pytest.raises(PutBack, match="sent nothing in 1 seconds"):
        Downloads(Access()).fetch([locked(server)])


def test_redirects_leave_credentials_behind(
    server: BadServer, other: BadServer, tmp_path: Path
) -> None:
    server.behave("/a.whl", Way(redirect="/inner"))
    server.file("/inner", BODY)
    server.behave("/inner", Way(redirect=f"http://localhost:{other.port}/a.whl"))
    assert fetched(f"http://user:word@127.0.0.1:{server.port}/a.whl", tmp_path) == BODY
    sent = [seen.headers.get("authorization") for seen in [*server.seen(), *other.seen()]]
    assert sent == [authorization("user", "word")] * 2 + [None]


@pytest.mark.parametrize("proxy", ["http://u:secret@[x", "http://u:secret/x@proxy.example:3128"])
def test_a_broken_proxy_is_not_taken_for_a_broken_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    error = error_of("https://index.invalid/page", tmp_path)
    assert str(error).startswith("the proxy that is set for index.invalid")
    assert "secret" not in f"{error}{error.hint}" and "%2F" in error.hint


def test_plain_http_is_refused_unless_allowed_by_name(
    server: BadServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://user:word@index.example/a.whl"
    error = error_of(url, tmp_path)
    assert "plain http" in str(error) and "--allow-insecure index.example" in error.hint
    monkeypatch.setenv("HTTP_PROXY", f"http://proxyuser:proxyword@127.0.0.1:{server.port}")
    assert fetched(url, tmp_path, "Index.example") == BODY
    (seen,) = server.seen()
    assert seen.target == "http://index.example/a.whl"
    assert seen.headers["proxy-authorization"] == authorization("proxyuser", "proxyword")
    monkeypatch.setenv("NO_PROXY", "direct.invalid")
    error = error_of("http://direct.invalid/a.whl", tmp_path, "direct.invalid")
    assert "has no address" in str(error)
    assert fetched(server.url + "/a.whl", tmp_path) == BODY
    assert server.seen()[-1].target == "/a.whl"  # this machine, directly


def test_a_certificate_that_nobody_vouches_for(
    tls: tuple[BadServer, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, authority = tls
    url = server.url + "/a.whl"
    error = error_of(url, tmp_path)
    assert f"certificate of 127.0.0.1:{server.port} cannot be trusted" in str(error)
    assert "SSL_CERT_FILE" in error.hint and "--allow-insecure 127.0.0.1" in error.hint
    assert not server.seen()
    assert fetched(url, tmp_path, "127.0.0.1") == BODY
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority))
    assert fetched(url, tmp_path) == BODY
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    assert fetched(url, tmp_path) == BODY


def test_https_does_not_lead_to_http(
    tls: tuple[BadServer, Path], other: BadServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, authority = tls
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    server.behave("/a.whl", Way(redirect=other.url + "/a.whl", times=None))
    assert "is plain http" in str(error_of(server.url + "/a.whl", tmp_path))


def test_what_pip_is_configured_with_counts_here_too(
    tls: tuple[BadServer, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: BadServer
) -> None:
    """A company's certificate and proxy often stand in pip.conf alone."""
    server, authority = tls
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\ncert = {authority}\nproxy = {other.url}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    assert fetched(server.url + "/a.whl", tmp_path) == BODY
    assert "the proxy that is set" in str(error_of("https://index.invalid/a.whl", tmp_path))
    assert {seen.target for seen in other.seen()} == {"index.invalid:443"}
    monkeypatch.setenv("NO_PROXY", "index.invalid")
    assert "has no address" in str(error_of("https://index.invalid/a.whl", tmp_path))
