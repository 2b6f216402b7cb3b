"""Tag → digest → image against a real registry, and one that asks for a bearer token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import certificates
import msgspec
import pytest
import standin_image
from bad_server import BadServer, Way
from image_registry import Registry, digest_of, layer, serve_registry
from registry_home import QUICK, log_in, settle
from token_server import TokenServer

from envcheck.exit_codes import Cannot, CouldNotLook, UsageError
from envcheck.install.network.session import Session
from envcheck.install.registry.client import RegistryClient
from envcheck.install.registry.image import Image
from envcheck.install.registry.reference import parse

ACCOUNT = ("somebody", "pa:ss-word-secret")
LAYERS = [layer({"etc/": b"", "etc/hello": b"hello"}), layer({"etc/more": b"more" * 1000})]
CONFIG = {"Entrypoint": ["/entry"], "Cmd": ["bash"], "Env": ["A=1", "B=x=y"], "User": "1000",
          "Labels": {"version": "23.03"}}  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with serve_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    with TokenServer(ACCOUNT) as running:
        yield running


@pytest.fixture
def server(tokens: TokenServer) -> Iterator[BadServer]:
    with BadServer() as running:
        running.gate = tokens.gate
        standin_image.put(running, LAYERS)
        yield running


def resolved(text: str, machine: str = "x86_64") -> Image:
    with Session(pause=QUICK) as session:
        return RegistryClient(session).resolve(parse(text), machine)


@pytest.mark.parametrize("style", ["oci", "docker"])
def test_an_image_is_described_to_the_byte(plain: Registry, style: str) -> None:
    pushed = plain.push(f"team/{style}", "1.0", LAYERS, config=CONFIG, style=style)
    image = resolved(f"{plain.host}/team/{style}:1.0")
    assert image.digest == image.manifest.digest == pushed.digest
    texts = (image.manifest_text.encode(), image.config_text.encode())
    assert texts == (pushed.body, pushed.config)
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
        with pytest.raises(CouldNotLook, match=f"certificate of {registry.host} cannot be trusted"):
            resolved(name)
        monkeypatch.setenv("SSL_CERT_FILE", str(tls.authority))
        with pytest.raises(CouldNotLook, match="answers 401 Unauthorized") as caught:
            resolved(name)
        assert f"podman login {registry.host}" in caught.value.hint
        wrong = log_in(home, registry.host, ACCOUNT[0], "another")
        with pytest.raises(CouldNotLook, match="401") as caught:
            resolved(name)
        assert str(wrong) in caught.value.hint and "another" not in caught.value.hint
        log_in(home, registry.host, *ACCOUNT)
        assert resolved(name).digest == pushed.digest


def test_a_public_image_needs_a_token_and_no_account(
    server: BadServer, tokens: TokenServer
) -> None:
    tokens.account = None
    resolved(standin_image.name(server))
    assert [asked["authorization"] for asked in tokens.asked] == [""]
    assert tokens.asked[0]["scope"] == f"repository:{standin_image.REPOSITORY}:pull"


def test_no_account_and_a_wrong_one(server: BadServer, tokens: TokenServer, home: Path) -> None:
    host = f"127.0.0.1:{server.port}"
    with pytest.raises(CouldNotLook, match=f"{host} gives no token: .*401") as caught:
        resolved(standin_image.name(server))
    assert f"podman login {host}" in caught.value.hint
    log_in(home, host, ACCOUNT[0], "wrong-secret")
    with pytest.raises(CouldNotLook) as caught:
        resolved(standin_image.name(server))
    assert "config.json) are wrong" in caught.value.hint
    assert "wrong-secret" not in str(caught.value) + caught.value.hint
    # Asked once a try, and not again and again until the account is locked.
    assert len(tokens.asked) == 2


@pytest.mark.parametrize(
    "realm", ["http://tokens.example/token", "ftp://127.0.0.1/", "token", "https://", "http://[::1"]
)
def test_a_realm_that_must_not_get_a_password_is_refused(
    server: BadServer, home: Path, realm: str
) -> None:
    server.gate = lambda seen: f'Bearer realm="{realm}",service="tests"'
    log_in(home, f"127.0.0.1:{server.port}", *ACCOUNT)
    with pytest.raises(CouldNotLook, match=f"{server.port} gives no token: .*its token server"):
        resolved(standin_image.name(server))


@pytest.mark.parametrize("elsewhere", [True, False])
def test_another_host_gets_no_token(
    server: BadServer, tokens: TokenServer, home: Path, elsewhere: bool
) -> None:
    """A config that lies elsewhere is fetched without it; where that host wants one, it gets none."""
    log_in(home, f"127.0.0.1:{server.port}", *ACCOUNT)
    image = resolved(standin_image.name(server))
    config = image.config_text.encode()
    with BadServer() as files:
        there = files.file("/bucket/1", config) + "?signature=hidden"
        server.behave(standin_image.blob(config), Way(redirect=there, times=None))
        if elsewhere:
            files.gate = tokens.gate  # the registry's own token server, named by another host
            with pytest.raises(CouldNotLook, match="401"):
                resolved(standin_image.name(server))
        else:
            assert resolved(standin_image.name(server)) == image
        assert files.seen() and not [s for s in files.seen() if "authorization" in s.headers]
