"""Whatever a registry sends, however slowly: one sentence that names it, without secrets, and no crash."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
import standin_image
from bad_server import CAPTIVE_PORTAL, BadServer, Way
from image_registry import digest_of, layer
from registry_home import QUICK, log_in, settle
from token_server import TokenServer

from envcheck.exit_codes import CouldNotLook, EnvcheckError
from envcheck.install.network import transport
from envcheck.install.network.session import Session
from envcheck.install.registry.client import RegistryClient
from envcheck.install.registry.image import Image
from envcheck.install.registry.reference import parse

TAG = standin_image.manifest("1")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        standin_image.put(running, [layer({"data": b"x"})])
        yield running


def resolved(server: BadServer) -> Image:
    with Session(pause=QUICK) as session:
        return RegistryClient(session).resolve(parse(standin_image.name(server)), "x86_64")


def refusal(server: BadServer, kind: type[EnvcheckError] = EnvcheckError) -> str:
    with pytest.raises(kind) as caught:
        resolved(server)
    sentence = str(caught.value)
    assert f"127.0.0.1:{server.port}" in sentence and "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    ("way", "says", "asked"),
    [
        (Way(status=400), "answers 400 Bad Request", 1),
        (Way(status=401), "answers 401 Unauthorized", 1),
        (Way(status=429), "answers 429 Too Many Requests", 3),
        (Way(status=429, headers={"Retry-After": "86400"}), "answers 429 Too Many Requests", 1),
        (Way(status=503), "answers 503 Service", 3),
        (Way(cut_after=20), "cut the connection", 3),
        (Way(declared=5 << 20), "sends a page larger than 4 MiB", 1),
        (CAPTIVE_PORTAL, "sends a broken manifest", 1),
        (Way(content=b"{}"), "sends a broken manifest", 1),
        (Way(redirect="http://elsewhere.example/x"), "redirects to http://elsewhere.example/x", 1),
        (Way(redirect=TAG), "redirects in a circle", 11),
        (Way(headers={"Docker-Content-Digest": digest_of(b"x")}), "the manifest of", 1),
    ],
)
def test_what_a_registry_answers_instead_of_a_manifest(
    server: BadServer, way: Way, says: str, asked: int
) -> None:
    way.times = None
    if way.declared:
        server.file(TAG, b" " * way.declared, content_type="application/json")
    server.behave(TAG, way)
    assert says in refusal(server, CouldNotLook)
    assert len(server.seen(TAG)) == asked


@pytest.mark.parametrize("what", ["manifest", "config"])
def test_another_one_than_its_digest_names(server: BadServer, what: str) -> None:
    image = resolved(server)
    if what == "config":
        path = standin_image.blob(image.config_text.encode())
        server.file(path, image.config_text.replace("amd64", "arm64").encode())
        assert "the config of" in refusal(server, CouldNotLook)
        return
    path = standin_image.manifest(image.digest)
    other = standin_image.put(server, [layer({"other": b"x"})], tag="2")
    server.file(path, other.body, content_type=other.media_type)
    with pytest.raises(CouldNotLook, match="the manifest of") as caught, Session() as session:
        RegistryClient(session).resolve(parse(image.pinned), "x86_64")
    assert image.digest in str(caught.value) and other.digest in str(caught.value)


@pytest.mark.parametrize("what", ["manifest", "config", "token"])
def test_an_answer_that_trickles_has_an_end(
    server: BadServer, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A byte a second is never silent: there is an end to all of an answer."""
    monkeypatch.setattr(transport, "PAGE_SECONDS", 0.3)
    slow = Way(rate=1, times=None)
    if what == "token":
        server.file("/token", b'{"token": "' + b"x" * 2000 + b'"}')
        server.behave("/token", slow)
        asked = f'Bearer realm="{server.url}/token",service="x"'
        server.gate = lambda seen: "" if seen.path.startswith("/token") else asked
    else:
        config = resolved(server).config_text.encode()
        server.behave(TAG if what == "manifest" else standin_image.blob(config), slow)
    with pytest.raises(CouldNotLook, match="does not answer any more"):
        resolved(server)


SECRETS = ("pass-word-secret", "token-secret", "signature-secret", "c29tZWJvZHk6")


def test_no_secret_gets_out(
    server: BadServer,
    home: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Every way in which it can fail while it is logged in: errors, their causes, logs, the terminal."""
    caplog.set_level(logging.INFO)  # at DEBUG, urllib3 writes every URL, and nothing asks it to
    log_in(home, f"127.0.0.1:{server.port}", "somebody", "pass-word-secret")
    config = standin_image.blob(resolved(server).config_text.encode())
    signed = f"{server.url}/elsewhere?X-Signature=signature-secret"
    ways = [Way(status=status) for status in (400, 401, 403, 404, 416, 429, 500)]
    ways += [Way(cut_after=10), Way(redirect=signed), Way(content=b"{"), Way(wrong_at=5)]
    shown: list[str] = []
    with TokenServer(("somebody", "pass-word-secret")) as tokens:
        tokens.body = b'{"token": "token-secret"}'
        server.gate = lambda seen: (
            "" if seen.headers.get("authorization") == "Bearer token-secret" else tokens.gate(seen)
        )
        image = resolved(server)
        for way in ways:
            way.times = None
            for path in (TAG, config):
                server.behave(path, Way(**vars(way)))
                shown += _failure(server)
                server.behave(path)
        server.gate = tokens.gate  # what was good is refused
        shown += _failure(server)
    assert len(shown) > len(ways)
    out, err = capfd.readouterr()
    shown += [out, err, caplog.text, repr(image)]
    for secret in SECRETS:
        assert not [text for text in shown if secret in text], secret


def _failure(server: BadServer) -> list[str]:
    with Session(pause=QUICK) as session:
        client = RegistryClient(session)
        with pytest.raises(EnvcheckError) as caught:
            client.resolve(parse(standin_image.name(server)), "x86_64")
        error = caught.value
        frames = "".join(traceback.format_exception(error))
        return [f"{error}\n{error.hint}\n{frames}\n{vars(error)}", repr(vars(session))]
