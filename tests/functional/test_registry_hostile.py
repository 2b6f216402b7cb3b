"""Whatever bytes a registry sends, however slowly: one sentence that names it, and no internal error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import standin_image
from bad_server import BadServer, Way
from image_registry import digest_of, layer
from registry_home import QUICK, settle
from token_server import TokenServer

from envcheck.exit_codes import CouldNotLook, EnvcheckError
from envcheck.install.network import transport
from envcheck.install.network.session import Session
from envcheck.install.registry.client import RegistryClient
from envcheck.install.registry.image import Image
from envcheck.install.registry.reference import parse

TAG = standin_image.manifest("1")
HUGE = b"9" * 6000
DEEP = b"[" * 200_000
# In the place of a string, of a number, of a field that nobody reads.
ODD = {
    "not UTF-8": b'"\xff\xfe"',
    "half of a surrogate pair": b'"\\ud800"',
    "a number of 6,000 digits": HUGE,
    "nested too deeply": DEEP,
    "a null": b"null",
    "an object": b"{}",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        standin_image.put(running, [layer({"data": b"x"})])
        yield running


def resolved(server: BadServer, tag: str = "1") -> Image:
    with Session(pause=QUICK) as session:
        return RegistryClient(session).resolve(parse(standin_image.name(server, tag)), "x86_64")


def refusal(server: BadServer, tag: str = "1") -> str:
    with pytest.raises(EnvcheckError) as caught:
        resolved(server, tag)
    assert f"127.0.0.1:{server.port}" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize(
    "field", ["architecture", "os", "variant", "created", "config", "rootfs", "elsewhere"]
)
def test_a_config_with_an_odd_value(server: BadServer, field: str, odd: bytes) -> None:
    _serve_config(server, json.dumps(field).encode() + b":" + odd)
    _resolved_or_refused(server)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("field", ["Labels", "Env", "Entrypoint", "Cmd", "User"])
def test_a_config_with_an_odd_value_in_what_is_run(
    server: BadServer, field: str, odd: bytes
) -> None:
    inner = {"Labels": b'{"a": ' + odd + b"}", "User": odd}.get(field, b"[" + odd + b"]")
    _serve_config(server, b'"config": {"' + field.encode() + b'":' + inner + b"}")
    _resolved_or_refused(server)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("field", ["mediaType", "schemaVersion", "config", "layers", "manifests"])
def test_a_manifest_with_an_odd_value(server: BadServer, field: str, odd: bytes) -> None:
    whole = json.loads(resolved(server).manifest_text)
    kept = json.dumps({k: v for k, v in whole.items() if k != field}).encode()
    server.file(TAG, kept[:-1] + b', "' + field.encode() + b'": ' + odd + b"}")
    _resolved_or_refused(server)


@pytest.mark.parametrize("odd", [*ODD.values(), b'"\\u0000"'], ids=[*ODD, "a null byte"])
def test_a_token_server_with_an_odd_token(server: BadServer, odd: bytes) -> None:
    with TokenServer() as tokens:
        server.gate = tokens.gate
        tokens.body = b'{"token": ' + odd + b"}"
        assert "gives no token" in refusal(server)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_refusal_with_an_odd_message(server: BadServer, odd: bytes) -> None:
    body = b'{"errors": [{"message": ' + odd + b"}]}"
    server.behave(TAG, Way(status=403, content=body, content_type="application/json", times=None))
    assert "answers 403" in refusal(server)


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


def _serve_config(server: BadServer, field: bytes) -> None:
    """The image's config with one more field, and a manifest that names it."""
    image = resolved(server)
    config = b"{" + field + b", " + image.config_text.encode()[1:]
    server.file(standin_image.blob(config), config)
    manifest = json.loads(image.manifest_text)
    manifest["config"] |= {"digest": digest_of(config), "size": len(config)}
    server.file(TAG, json.dumps(manifest).encode(), content_type=manifest["mediaType"])


def _resolved_or_refused(server: BadServer) -> None:
    """What nobody reads may be anything; what is read may not."""
    try:
        assert resolved(server).architecture == "amd64"
    except EnvcheckError as error:
        assert f"127.0.0.1:{server.port}" in str(error)


@pytest.mark.parametrize("status", [404, 500])
def test_the_registry_s_own_words_are_shown(server: BadServer, status: int) -> None:
    body = b'{"errors": [{"code": "DENIED", "message": "this repository has moved to team/new"}]}'
    server.behave(
        TAG, Way(status=status, content=body, content_type="application/json", times=None)
    )
    assert "this repository has moved to team/new" in refusal(server)
