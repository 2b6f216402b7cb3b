"""The HTTP session against loopback servers: redirects, credentials, proxies, certificates."""

from __future__ import annotations

import base64
import gzip
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import certificates
import pytest
from bad_server import CAPTIVE, BadServer, Way

from envcheck.install.network.errors import HttpError
from envcheck.install.network.session import Session

QUICK = 0.01  # seconds before the second retry
BODY = b"a page" * 1000


@pytest.fixture(autouse=True)
def _nobody_s_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        running.file("/page", BODY, content_type="text/html")
        yield running


@pytest.fixture
def other() -> Iterator[BadServer]:
    with BadServer() as running:
        running.file("/page", BODY)
        yield running


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(pause=QUICK) as running:
        yield running


def authorization(user: str, word: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{word}".encode()).decode()


def with_user(server: BadServer, user: str, word: str, path: str = "/page") -> str:
    return f"http://{user}:{word}@127.0.0.1:{server.port}{path}"


def error_of(session: Session, url: str, **options: bool) -> HttpError:
    with pytest.raises(HttpError) as caught:
        session.get(url, **options)  # type: ignore[arg-type]
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


def test_a_page_that_is_cut_is_asked_for_again(server: BadServer, session: Session) -> None:
    server.behave("/page", Way(cut_after=100), Way(status=502))
    with session.get(server.url + "/page") as answer:
        assert (answer.status_code, answer.content) == (200, BODY)
    assert len(server.seen()) == 3


def test_redirects_leave_credentials_behind(
    server: BadServer, other: BadServer, session: Session
) -> None:
    server.behave("/page", Way(redirect="/inner"))
    server.file("/inner", BODY)
    server.behave("/inner", Way(redirect=other.url + "/page"))
    answer = session.get(with_user(server, "user", "word"))
    assert answer.content == BODY and "word" not in answer.url
    sent = [seen.headers.get("authorization") for seen in [*server.seen(), *other.seen()]]
    assert sent == [authorization("user", "word")] * 2 + [None]
    server.behave("/page", Way(redirect=other.url + "/page"))
    session.get(server.url + "/page", headers={"Authorization": "given"})
    assert server.seen()[-1].headers["authorization"] == "given"
    assert "authorization" not in other.seen()[-1].headers


def test_a_proxys_refusal_is_no_answer_of_the_index(
    server: BadServer, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its 404 would be taken for an index that lacks the project."""
    monkeypatch.setenv("HTTPS_PROXY", server.url)
    error = error_of(session, "https://index.invalid/page")
    assert error.status is None and "status 404" in str(error)


@pytest.mark.parametrize("proxy", ["http://u:secret@[x", "http://u:secret/x@proxy.example:3128"])
def test_a_broken_proxy_is_not_taken_for_a_broken_index(
    session: Session, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    error = error_of(session, "https://index.invalid/page")
    assert str(error).startswith("the proxy that is set for index.invalid is not an address")
    assert "secret" not in error.hint and "%2F" in error.hint


def test_plain_http_is_refused_unless_allowed_by_name(
    server: BadServer, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://user:word@index.example/page"
    error = error_of(session, url)
    assert "plain http" in str(error) and "--allow-insecure index.example" in error.hint
    server.behave("/page", Way(redirect="http://other.example/page"))
    assert "plain http" in str(error_of(session, server.url + "/page"))
    monkeypatch.setenv("HTTP_PROXY", server.url)
    with Session(["Index.example"], pause=QUICK) as allowing:
        assert allowing.get(url).content == BODY
        assert "plain http" in str(error_of(allowing, "http://sub.index.example/page"))


def test_the_user_s_proxy_is_used_and_no_proxy_heeded(
    server: BadServer, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", with_user(server, "proxyuser", "proxyword", ""))
    with Session(["index.example", "direct.invalid"], pause=QUICK) as allowing:
        assert allowing.get("http://index.example/page").content == BODY
        (seen,) = server.seen()
        assert seen.target == "http://index.example/page"
        given = seen.headers["proxy-authorization"]
        assert given == authorization("proxyuser", "proxyword")
        monkeypatch.setenv("NO_PROXY", "direct.invalid")
        assert "has no address" in str(error_of(allowing, "http://direct.invalid/page"))
    session.get(server.url + "/page")
    assert server.seen()[-1].target == "/page"  # this machine, directly


def test_a_page_in_the_place_of_a_file(server: BadServer, session: Session) -> None:
    server.behave("/page", Way(content=CAPTIVE, times=None))
    assert session.get(server.url + "/page").content == CAPTIVE
    error = error_of(session, server.url + "/page", file=True)
    assert "a web page (HTML) came from" in str(error) and "log in" in error.hint


def test_an_endless_page_is_not_read_to_its_end(
    server: BadServer, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envcheck.install.network.session.PAGE_LIMIT", 1 << 20)
    server.behave("/page", Way(content=bytes(9_000_000), length=False, times=None))
    assert "larger than 1 MiB" in str(error_of(session, server.url + "/page"))


def test_a_packed_page_is_not_unpacked_to_its_end(
    server: BadServer, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envcheck.install.network.session.PAGE_LIMIT", 1 << 20)
    packed = gzip.compress(bytes(200 << 20))
    server.behave("/page", Way(content=packed, headers={"Content-Encoding": "gzip"}, times=None))
    tracemalloc.start()
    try:
        assert "larger than 1 MiB" in str(error_of(session, server.url + "/page"))
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()


def test_closing_ends_a_pause(server: BadServer) -> None:
    import threading

    server.behave("/page", Way(status=503, times=None))
    with Session(pause=100.0) as waiting:
        threading.Timer(0.2, waiting.close).start()
        assert "503" in str(error_of(waiting, server.url + "/page"))


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[BadServer, Path]]:
    made = certificates.make(tmp_path / "tls")
    with BadServer(tls=(made.certificate, made.key)) as running:
        running.file("/page", BODY)
        yield running, made.authority


def test_a_certificate_that_nobody_vouches_for(tls: tuple[BadServer, Path]) -> None:
    server, _ = tls
    with Session(pause=QUICK) as session:
        error = error_of(session, server.url + "/page")
    assert f"certificate of 127.0.0.1:{server.port} cannot be trusted" in str(error)
    assert "SSL_CERT_FILE" in error.hint and "--allow-insecure 127.0.0.1" in error.hint
    assert not server.seen()
    with Session(["127.0.0.1"], pause=QUICK) as allowing:
        assert allowing.get(server.url + "/page").content == BODY


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_the_user_s_certificates_are_trusted(
    tls: tuple[BadServer, Path], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    server, authority = tls
    monkeypatch.setenv(variable, str(authority))
    with Session(pause=QUICK) as session:
        assert session.get(server.url + "/page").content == BODY


def test_https_does_not_lead_to_http(
    tls: tuple[BadServer, Path], other: BadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, authority = tls
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    server.behave("/page", Way(redirect=other.url + "/page", times=None))
    with Session(pause=QUICK) as session:
        error = error_of(session, server.url + "/page")
    assert "redirects from https to http" in str(error) and not other.seen()


def test_what_pip_is_configured_with_counts_here_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: Session, other: BadServer
) -> None:
    """A company's certificate and proxy often stand in pip.conf alone."""
    made = certificates.make(tmp_path / "tls")
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\ncert = {made.authority}\nproxy = {other.url}\n")
    with BadServer(tls=(made.certificate, made.key)) as secure:
        secure.file("/page", BODY)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        with Session(pause=QUICK) as without:
            assert "cannot be trusted" in str(error_of(without, secure.url + "/page"))
        monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
        assert session.get(secure.url + "/page").content == BODY
    assert "the proxy that is set" in str(error_of(session, "https://index.invalid/page"))
    assert [seen.target for seen in other.seen()] == ["index.invalid:443"]
    monkeypatch.setenv("NO_PROXY", "index.invalid")
    assert "has no address" in str(error_of(session, "https://index.invalid/page"))
