"""Whatever a registry sends, however slowly: one sentence that names it, without secrets, and no crash."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
import standin_image
from bad_server import CAPTIVE_PORTAL, BadServer, Way
from image_registry import layer
from registry_home import log_in, settle
from token_server import TokenServer

from envcheck.exit_codes import CouldNotLook, EnvcheckError
from envcheck.install.engines import skopeo
from envcheck.install.registry.image import Image
from envcheck.install.registry.reference import parse

TAG = standin_image.manifest("1")

PROGRAM = shutil.which("skopeo") or ""
pytestmark = pytest.mark.skipif(not PROGRAM, reason="there is no skopeo on this machine")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        running.file("/v2/", b"{}", content_type="application/json")
        standin_image.put(running, [layer({"data": b"x"})])
        yield running


def resolved(server: BadServer, name: str = "") -> Image:
    named = parse(name or standin_image.name(server))
    options = skopeo.options_of(named, [])
    return skopeo.resolve(PROGRAM, named, "x86_64", options, "podman")


@pytest.mark.parametrize(
    ("way", "says"),
    [
        (Way(status=400), "does not give"),
        (Way(status=401), "does not give"),
        (Way(status=404), "has no tag 1 of team/image"),
        (Way(status=503), "does not give"),
        (Way(cut_after=20), "does not give"),
        (Way(declared=5 << 20), "does not give"),
        (CAPTIVE_PORTAL, "broken manifest"),
        (Way(content=b"{}"), "broken manifest"),
        (Way(redirect=TAG), "does not give"),
    ],
)
def test_what_a_registry_answers_instead_of_a_manifest(
    server: BadServer, way: Way, says: str
) -> None:
    way.times = None
    if way.declared:
        server.file(TAG, b" " * way.declared, content_type="application/json")
    server.behave(TAG, way)
    with pytest.raises(EnvcheckError) as caught:
        resolved(server)
    sentence = str(caught.value)
    assert f"127.0.0.1:{server.port}" in sentence and says in sentence and "\n" not in sentence


@pytest.mark.parametrize("what", ["manifest", "config"])
def test_another_one_than_its_digest_names(server: BadServer, what: str) -> None:
    image = resolved(server)
    if what == "config":
        config = standin_image.put(server, [layer({"data": b"x"})]).config
        server.file(standin_image.blob(config), config.replace(b"amd64", b"arm64"))
        with pytest.raises(CouldNotLook):
            resolved(server)
        return
    other = standin_image.put(server, [layer({"other": b"x"})], tag="2")
    server.file(standin_image.manifest(image.digest), other.body, content_type=other.media_type)
    with pytest.raises(CouldNotLook):
        resolved(server, image.pinned)


def test_an_answer_that_trickles_has_an_end(
    server: BadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skopeo, "_SECONDS", 1.0)
    server.behave(TAG, Way(rate=1, times=None))
    with pytest.raises(CouldNotLook, match="does not answer"):
        resolved(server)


def test_no_secret_gets_out(server: BadServer, home: Path) -> None:
    """Every way in which it can fail while it is logged in."""
    log_in(home, f"127.0.0.1:{server.port}", "somebody", "pass-word-secret")
    ways = [Way(status=status) for status in (400, 401, 403, 404, 500)]
    ways += [Way(redirect=f"{server.url}/elsewhere?X-Signature=signature-secret")]
    shown: list[str] = []
    with TokenServer(("somebody", "pass-word-secret")) as tokens:
        tokens.body = b'{"token": "token-secret"}'
        server.gate = lambda seen: (
            "" if seen.headers.get("authorization") == "Bearer token-secret" else tokens.gate(seen)
        )
        shown.append(repr(resolved(server)))
        for way in ways:
            way.times = None
            server.behave(TAG, way)
            with pytest.raises(EnvcheckError) as caught:
                resolved(server)
            frames = "".join(traceback.format_exception(caught.value))
            shown.append(f"{caught.value}\n{caught.value.hint}\n{frames}")
    for secret in ("pass-word-secret", "token-secret", "signature-secret", "c29tZWJvZHk6"):
        assert not [text for text in shown if secret in text], secret
