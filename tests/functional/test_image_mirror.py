"""The loopback registry itself: what it answers, to whom, while layers grow; and docker pulls from it."""

from __future__ import annotations

import json
import random
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import standin_image
from bad_server import BadServer, Way
from docker_daemon import DockerDaemon
from fetching import QUICK as RETRIES
from fetching import wait_until
from image_registry import digest_of, layer
from registry_home import QUICK, settle

from envcheck.install.images.mirror import MirrorServer
from envcheck.install.network.session import Session
from envcheck.install.registry import client as registry
from envcheck.install.registry.image import Image
from envcheck.install.registry.reference import parse
from envcheck.install.store.fetch import Fetcher
from envcheck.install.store.store import Store

LAYERS = [layer({"data": random.Random(2).randbytes(1_000_000)}), layer({"small": b"x"})]
LARGE, SMALL = LAYERS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        standin_image.put(running, LAYERS)
        yield running


@contextmanager
def mirrored(server: BadServer, folder: Path) -> Iterator[tuple[Image, MirrorServer]]:
    with Session(retries=QUICK) as session:
        image = registry.resolve(session, parse(standin_image.name(server)), "x86_64")
        fetching = Fetcher(Store(folder / "store"), session, retries=RETRIES)
        with fetching as fetcher, MirrorServer(image, fetcher) as mirror:
            yield image, mirror


def ask(mirror: MirrorServer, path: str, method: str = "GET", **headers: str) -> Any:
    """An answer, also one with an error's status. path: "" is the repository's."""
    url = f"http://{mirror.host}{path}"
    request = urllib.request.Request(url, headers=headers, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return opener.open(request, timeout=20)
    except urllib.error.HTTPError as error:
        return error


def of(mirror: MirrorServer, kind: str, wanted: str) -> str:
    return f"/v2/{mirror.repository}/{kind}/{wanted}"


def test_it_has_the_manifest_the_config_and_the_layers(server: BadServer, tmp_path: Path) -> None:
    with mirrored(server, tmp_path) as (image, mirror):
        assert ask(mirror, "/v2/").status == 200
        for wanted in (image.manifest.digest, "1", "latest"):
            with ask(mirror, of(mirror, "manifests", wanted)) as answer:
                assert answer.read() == image.manifest_text.encode()
                assert answer.headers["Content-Type"] == image.manifest.media_type
                assert answer.headers["Docker-Content-Digest"] == image.manifest.digest
        with ask(mirror, of(mirror, "blobs", image.config.digest)) as answer:
            assert answer.read() == image.config_text.encode()
        for data in LAYERS:
            with ask(mirror, of(mirror, "blobs", digest_of(data))) as answer:
                assert answer.read() == data
        with ask(mirror, of(mirror, "blobs", digest_of(LARGE)), Range="bytes=500000-") as answer:
            assert (answer.status, answer.read()) == (206, LARGE[500_000:])
        with ask(mirror, of(mirror, "blobs", digest_of(LARGE)), "HEAD") as answer:
            assert (answer.headers["Content-Length"], answer.read()) == (str(len(LARGE)), b"")


def test_it_has_nothing_else_and_nothing_for_strangers(server: BadServer, tmp_path: Path) -> None:
    with mirrored(server, tmp_path) as (image, mirror):
        other = digest_of(b"something else")
        secret, _, path = mirror.repository.partition("/")
        for wanted in (
            of(mirror, "manifests", other),
            of(mirror, "blobs", other),
            of(mirror, "blobs", "../../etc/passwd"),
            f"/v2/{path}/manifests/1",
            f"/v2/{'0' * len(secret)}/{path}/manifests/1",
            f"/v2/{secret}/other/manifests/1",
            f"/v2/{secret}/{path}/tags/list",
            "/v2/_catalog",
            "/",
        ):
            answer = ask(mirror, wanted)
            assert answer.code == 404, wanted
            assert "errors" in json.loads(answer.read())
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert ask(mirror, of(mirror, "blobs", "uploads/"), method).code == 501
        assert secret not in repr(mirror.errors) and image.manifest.digest


def test_a_layer_is_shown_while_it_grows(server: BadServer, tmp_path: Path) -> None:
    server.behave(standin_image.blob(LARGE), Way(rate=400_000, times=None))
    with mirrored(server, tmp_path) as (_, mirror):
        answer = ask(mirror, of(mirror, "blobs", digest_of(LARGE)))
        assert answer.read(1000) == LARGE[:1000]
        assert server.sent(standin_image.blob(LARGE)) < len(LARGE)


def test_an_end_in_the_middle_cuts_and_does_not_wait(server: BadServer, tmp_path: Path) -> None:
    server.behave(standin_image.blob(LARGE), Way(stall_after=500_000, times=None))
    with mirrored(server, tmp_path) as (_, mirror):
        answer = ask(mirror, of(mirror, "blobs", digest_of(LARGE)))
        assert answer.read(1000)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", mirror.server_port), timeout=5)


def test_garbage_does_no_harm(server: BadServer, tmp_path: Path) -> None:
    """docker tries TLS first."""
    with mirrored(server, tmp_path) as (image, mirror):
        for said in (
            b"\x16\x03\x01\x02\x00\x01\n\x00\n",
            b"GET\n\n",
            b"GET /v2/\xff%00 HTTP/9.9\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", mirror.server_port), timeout=5) as wire:
                wire.sendall(said)
                wire.shutdown(socket.SHUT_WR)
                wire.recv(1000)
        assert ask(mirror, of(mirror, "manifests", image.manifest.digest)).status == 200


def test_a_crowd_of_strangers_is_turned_away(
    server: BadServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envcheck.install.serving.server.MOST", 5)
    with mirrored(server, tmp_path) as (_, mirror):
        crowd = [socket.create_connection(("127.0.0.1", mirror.server_port)) for _ in range(20)]
        wait_until(lambda: _ended(crowd) == 15)
        for wire in crowd:
            wire.close()
        wait_until(lambda: ask(mirror, "/v2/").status == 200)


def _ended(crowd: list[socket.socket]) -> int:
    ended = 0
    for wire in crowd:
        wire.settimeout(0.01)
        try:
            ended += wire.recv(1) == b""
        except TimeoutError:
            continue
        except OSError:
            ended += 1
    return ended


def pull(daemon: DockerDaemon, image: Image, mirror: MirrorServer) -> tuple[int, str]:
    name = f"{mirror.host}/{mirror.repository}@{image.manifest.digest}"
    done = daemon.docker("pull", "--quiet", name, code=None)
    if not done.returncode:
        daemon.docker("rmi", name)
    return done.returncode, done.stderr


def test_docker_pulls_from_it(
    docker_daemon: DockerDaemon, server: BadServer, tmp_path: Path
) -> None:
    server.behave(standin_image.blob(LARGE), Way(rate=1_000_000, cut_after=400_000))
    with mirrored(server, tmp_path) as (image, mirror):
        code, said = pull(docker_daemon, image, mirror)
        assert code == 0, said
        assert not mirror.errors


@pytest.mark.parametrize(
    ("way", "says"),
    [
        (Way(status=404, times=None), "does not have it"),
        pytest.param(  # docker itself asks for 15 s; podman's test of the same takes two
            Way(wrong_at=500_000, times=None),
            "is not the file that was asked for",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_docker_gives_up_where_we_do(
    docker_daemon: DockerDaemon, server: BadServer, tmp_path: Path, way: Way, says: str
) -> None:
    server.behave(standin_image.blob(LARGE), way)
    with mirrored(server, tmp_path) as (image, mirror):
        code, _ = pull(docker_daemon, image, mirror)
        assert code != 0
        assert says in str(mirror.errors[0])
