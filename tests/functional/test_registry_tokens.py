"""Bearer tokens: got, kept, renewed in the middle of a download, and given to nobody else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import standin_image
from bad_server import BadServer, Way
from image_registry import layer
from registry_home import QUICK, log_in, settle
from token_server import TokenServer

from envcheck.exit_codes import CouldNotLook
from envcheck.install.downloads import Downloads
from envcheck.install.network.session import Session
from envcheck.install.registry.client import RegistryClient
from envcheck.install.registry.image import Image
from envcheck.install.registry.reference import parse

ACCOUNT = ("somebody", "pass-word-secret")
LARGE = layer({"data": random.Random(1).randbytes(2_000_000)})
LAYERS = [LARGE, layer({"etc/hello": b"hello"})]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


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


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(pause=QUICK) as running:
        yield running


@pytest.fixture
def client(session: Session, home: Path) -> RegistryClient:
    return RegistryClient(session)


def resolved(client: RegistryClient, server: BadServer) -> Image:
    return client.resolve(parse(standin_image.name(server)), "x86_64")


def downloaded(folder: Path, client: RegistryClient, image: Image) -> None:
    downloads = Downloads(client.registry_of(image))
    downloads.root = folder / "downloads"
    downloads.fetch(client.layers(image))
    assert all(map(downloads.has, client.layers(image)))


def test_a_public_image_needs_a_token_and_no_account(
    server: BadServer, tokens: TokenServer, client: RegistryClient
) -> None:
    tokens.account = None
    resolved(client, server)
    assert [asked["authorization"] for asked in tokens.asked] == [""]
    assert tokens.asked[0]["scope"] == f"repository:{standin_image.REPOSITORY}:pull"


def test_no_account_and_a_wrong_one(
    server: BadServer, tokens: TokenServer, client: RegistryClient, home: Path
) -> None:
    host = f"127.0.0.1:{server.port}"
    with pytest.raises(CouldNotLook, match=f"{host} gives no token: .*401") as caught:
        resolved(client, server)
    assert f"podman login {host}" in caught.value.hint
    log_in(home, host, ACCOUNT[0], "wrong-secret")
    with pytest.raises(CouldNotLook) as caught, Session(pause=QUICK) as another:
        resolved(RegistryClient(another), server)
    assert "config.json) are wrong" in caught.value.hint
    assert "wrong-secret" not in str(caught.value) + caught.value.hint
    # Asked once a try, and not again and again until the account is locked.
    assert len(tokens.asked) == 2


@pytest.mark.parametrize(
    "realm", ["http://tokens.example/token", "ftp://127.0.0.1/", "token", "https://", "http://[::1"]
)
def test_a_realm_that_nobody_should_log_in_at_is_refused(
    server: BadServer, client: RegistryClient, home: Path, realm: str
) -> None:
    server.gate = lambda seen: f'Bearer realm="{realm}",service="tests"'
    log_in(home, f"127.0.0.1:{server.port}", *ACCOUNT)
    with pytest.raises(
        CouldNotLook,
        match=f"{server.port} gives no token: .*its token server",
    ):
        resolved(client, server)


def test_a_token_that_ends_in_the_middle_of_a_download_is_renewed(
    server: BadServer,
    tokens: TokenServer,
    client: RegistryClient,
    home: Path,
    tmp_path: Path,
) -> None:
    log_in(home, f"127.0.0.1:{server.port}", *ACCOUNT)
    image = resolved(client, server)
    server.behave(standin_image.blob(LARGE), Way(cut_after=1_000_000), Way(cut_after=500_000))
    tokens.expire()
    downloaded(tmp_path, client, image)
    assert len(tokens.asked) == 2


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_blob_that_lies_elsewhere_is_fetched_without_the_token(
    server: BadServer, tokens: TokenServer, client: RegistryClient, home: Path,
    tmp_path: Path, elsewhere: bool,
) -> None:  # fmt: skip
    log_in(home, f"127.0.0.1:{server.port}", *ACCOUNT)
    image = resolved(client, server)
    with BadServer() as files:
        there = files.file("/bucket/1", LARGE) + "?signature=hidden"
        if elsewhere:
            # A second host that asks for the same kind of token, as an attacker's would.
            files.gate = lambda seen: "" if "authorization" not in seen.headers else "Basic"
        server.behave(standin_image.blob(LARGE), Way(redirect=there, times=None))
        downloaded(tmp_path, client, image)
        assert files.seen() and not [s for s in files.seen() if "authorization" in s.headers]


def test_a_host_of_files_that_asks_for_a_log_in_gets_none(
    server: BadServer, tokens: TokenServer, client: RegistryClient, home: Path
) -> None:
    log_in(home, f"127.0.0.1:{server.port}", *ACCOUNT)
    with BadServer() as files:
        there = files.file("/bucket/1", b"x")
        files.gate = tokens.gate  # the registry's own token server, named by somebody else
        server.behave(standin_image.manifest("1"), Way(redirect=there, times=None))
        with pytest.raises(CouldNotLook, match="401"):
            resolved(client, server)
        assert not [s for s in files.seen() if "authorization" in s.headers]
