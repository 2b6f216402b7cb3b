"""Tag → digest → image against a real registry, and whatever another one sends: one sentence, no secrets."""

from __future__ import annotations

import base64
import json
import shutil
import traceback
from collections.abc import Iterator
from pathlib import Path

import certificates
import msgspec
import pytest
import standin_image
from bad_server import CAPTIVE_PORTAL, BadServer, Way
from image_registry import Registry, digest_of, layer, serve_registry
from registry_home import log_in, settle
from token_server import TokenServer

from envcheck.exit_codes import Cannot, CouldNotLook, EnvcheckError, UsageError
from envcheck.install.engines import skopeo
from envcheck.install.network import addresses
from envcheck.install.registry.image import Image
from envcheck.install.registry.reference import parse

ACCOUNT = ("somebody", "pa:ss-word-secret")
LAYERS = [layer({"etc/": b"", "etc/hello": b"hello"}), layer({"etc/more": b"more" * 1000})]
CONFIG = {"Entrypoint": ["/entry"], "Cmd": ["bash"], "Env": ["A=1", "B=x=y"], "User": "1000",
          "Labels": {"version": "23.03"}}  # fmt: skip

PROGRAM = shutil.which("skopeo") or ""
pytestmark = pytest.mark.skipif(not PROGRAM, reason="there is no skopeo on this machine")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with serve_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


def resolved(text: str, machine: str = "x86_64") -> Image:
    named = parse(text)
    options = skopeo.options_of(named, [])
    return skopeo.resolve(PROGRAM, named, machine, options, "podman")


@pytest.mark.parametrize("style", ["oci", "docker"])
def test_an_image_is_described_to_the_byte(plain: Registry, style: str) -> None:
    pushed = plain.push(f"team/{style}", "1.0", LAYERS, config=CONFIG, style=style)
    image = resolved(f"{plain.host}/team/{style}:1.0")
    assert image.digest == image.manifest.digest == pushed.digest
    assert image.config.digest == digest_of(pushed.config)
    assert [blob.digest for blob in image.layers] == [digest_of(blob) for blob in LAYERS]
    assert image.download_bytes == sum(map(len, LAYERS))
    assert image.architecture == "amd64"
    assert (image.entrypoint, image.user) == (["/entry"], "1000")
    assert image.environment == {"A": "1", "B": "x=y"}
    assert image.pinned == f"{plain.host}/team/{style}@{pushed.digest}"
    assert resolved(image.pinned) == msgspec.structs.replace(image, reference=image.pinned)


@pytest.mark.parametrize("style", ["oci", "docker"])
def test_of_an_index_this_machine_s_image_is_taken(plain: Registry, style: str) -> None:
    name = f"team/many-{style}"
    ours = plain.push(name, "", LAYERS[:1], style=style)
    arm = plain.push(name, "", LAYERS[1:], architecture="arm64", variant="v8", style=style)
    many = plain.push_index(name, "latest", [arm, ours], style=style)
    image = resolved(f"{plain.host}/{name}")
    assert (image.digest, image.manifest.digest) == (many.digest, ours.digest)
    assert resolved(f"{plain.host}/{name}", "aarch64").manifest.digest == arm.digest
    assert resolved(f"{plain.host}/{name}@{many.digest}").manifest.digest == ours.digest
    with pytest.raises(Cannot, match=r"not exist for linux/ppc64le.* linux/arm64, linux/amd64"):
        resolved(f"{plain.host}/{name}", "ppc64le")


def test_an_unknown_name_and_an_unknown_digest(plain: Registry) -> None:
    with pytest.raises(UsageError, match="has no tag 1 of team/nothing"):
        resolved(f"{plain.host}/team/nothing:1")
    plain.push("team/something", "1", LAYERS)
    digest = digest_of(b"nothing")
    with pytest.raises(UsageError, match=f"has no digest {digest} of team/something"):
        resolved(f"{plain.host}/team/something@{digest}")


def test_tls_and_a_password(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = certificates.make(tmp_path / "tls")
    with serve_registry(tmp_path / "registry", tls=tls, htpasswd=ACCOUNT) as registry:
        pushed = registry.push("team/secret", "1", LAYERS)
        name = f"{registry.host}/team/secret:1"
        monkeypatch.setattr(addresses, "is_loopback", lambda url: False)
        with pytest.raises(CouldNotLook, match="certificate") as caught:
            resolved(name)
        assert f"certs.d/{registry.host}" in caught.value.hint or "certs.d" in caught.value.hint
        monkeypatch.setenv("SSL_CERT_FILE", str(tls.authority))
        for password in ("", "another"):
            if password:
                log_in(home, registry.host, ACCOUNT[0], password)
            with pytest.raises(CouldNotLook, match=f"{registry.host} does not give") as caught:
                resolved(name)
            assert "log in with podman login" in caught.value.hint
            assert "another" not in f"{caught.value}{caught.value.hint}"
        log_in(home, registry.host, *ACCOUNT)
        assert resolved(name).digest == pushed.digest


def test_the_key_of_ngc_is_for_its_registry_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NGC_API_KEY", "key-secret\n")
    options = skopeo.options_of(parse("nvcr.io/nvidia/tensorflow:1"), [])
    assert "key-secret" not in repr(options) and skopeo.write_login(options, tmp_path)
    login = json.loads((tmp_path / skopeo.LOGIN).read_bytes())["auths"]["nvcr.io"]["auth"]
    assert base64.b64decode(login) == b"$oauthtoken:key-secret"
    assert not skopeo.write_login(skopeo.options_of(parse("registry.example/a"), []), tmp_path)


TAG = standin_image.manifest("1")


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        running.file("/v2/", b"{}", content_type="application/json")
        standin_image.put(running, [layer({"data": b"x"})])
        yield running


def asked(server: BadServer, name: str = "") -> Image:
    return resolved(name or standin_image.name(server))


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
        asked(server)
    sentence = str(caught.value)
    assert f"127.0.0.1:{server.port}" in sentence and says in sentence and "\n" not in sentence


@pytest.mark.parametrize("what", ["manifest", "config"])
def test_another_one_than_its_digest_names(server: BadServer, what: str) -> None:
    image = asked(server)
    if what == "config":
        config = standin_image.put(server, [layer({"data": b"x"})]).config
        server.file(standin_image.blob(config), config.replace(b"amd64", b"arm64"))
        with pytest.raises(CouldNotLook):
            asked(server)
        return
    other = standin_image.put(server, [layer({"other": b"x"})], tag="2")
    server.file(standin_image.manifest(image.digest), other.body, content_type=other.media_type)
    with pytest.raises(CouldNotLook):
        asked(server, image.pinned)


def test_an_answer_that_trickles_has_an_end(
    server: BadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skopeo, "_SECONDS", 1.0)
    server.behave(TAG, Way(rate=1, times=None))
    with pytest.raises(CouldNotLook, match="does not answer"):
        asked(server)


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
        shown.append(repr(asked(server)))
        for way in ways:
            way.times = None
            server.behave(TAG, way)
            with pytest.raises(EnvcheckError) as caught:
                asked(server)
            frames = "".join(traceback.format_exception(caught.value))
            shown.append(f"{caught.value}\n{caught.value.hint}\n{frames}")
    for secret in ("pass-word-secret", "token-secret", "signature-secret", "c29tZWJvZHk6"):
        assert not [text for text in shown if secret in text], secret
