"""The loopback index over real sockets: HTTP as installers speak it, and nothing for anybody else."""

from __future__ import annotations

import base64
import hashlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from envcheck.exit_codes import CouldNotLook
from envcheck.install.index.address import INDEX_URL
from envcheck.install.index.server import IndexServer
from envcheck.install.index.simple import JSON_TYPE, ProjectFile, parse
from envcheck.install.lockfile import LockedFile
from envcheck.install.store.errors import FetchError
from envcheck.install.store.store import Store
from envcheck.install.store.transfer import Transfer

SIZE = 3_000_000
BYTES = bytes(range(251)) * (SIZE // 251 + 1)
BYTES = BYTES[:SIZE]
SHA = hashlib.sha256(BYTES).hexdigest()
NAME = "demo-1.0+local-py3-none-any.whl"
METADATA = b"Metadata-Version: 2.1\nName: demo\n"


@dataclass
class Shelf:
    """A view with one project, of one file."""

    transfer: Transfer
    error: Exception | None = None
    asked: list[str] = field(default_factory=list)

    def project(self, name: str) -> list[ProjectFile] | None:
        self.asked.append(name)
        if self.error is not None:
            raise self.error
        shown = ProjectFile(filename=NAME, url="", sha256=SHA, metadata="true")
        return [shown] if name == "my-demo" else None

    def metadata(self, key: str) -> bytes | None:
        return METADATA if key == SHA else None

    def file(self, key: str) -> Transfer | None:
        return self.transfer if key in (SHA, "url-1") else None


class Growing:
    """A transfer that the test lets grow."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "partial"
        file = LockedFile(name=NAME, url="https://x/", sha256=SHA, size=SIZE)
        self.store = Store(folder / "store")
        self.transfer = Transfer(file, self.store)
        self.path.write_bytes(b"")
        self.transfer.begun(self.path, 0)

    def to(self, size: int) -> None:
        with self.path.open("ab") as file:
            file.write(BYTES[self.path.stat().st_size : size])
        if size == SIZE:
            self.store.adopt(self.path, SHA)
            self.transfer.finished(size)
        else:
            self.transfer.grown(size)


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    return Growing(tmp_path)


@pytest.fixture
def shelf(growing: Growing) -> Shelf:
    return Shelf(growing.transfer)


@pytest.fixture
def server(shelf: Shelf) -> Iterator[IndexServer]:
    with IndexServer(shelf) as running:
        yield running


class Client:
    """One connection, kept alive."""

    def __init__(self, server: IndexServer) -> None:
        self.base = urlsplit(server.url).path.removesuffix("/simple/")
        self.connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)

    def ask(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, self.base + path, headers=sent)
        answer = self.connection.getresponse()
        return answer, answer.read()


@pytest.fixture
def client(server: IndexServer) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.connection.close()


FILE = f"/files/{SHA}/{NAME}"


def test_a_page_in_the_form_that_is_asked_for(client: Client) -> None:
    for accept, kind in ((JSON_TYPE, JSON_TYPE), ("text/html", "text/html; charset=utf-8")):
        answer, body = client.ask("/simple/my-demo/", Accept=accept)
        assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
        assert answer.headers["Cache-Control"] == "no-store"
        (file,) = parse(body, kind, "http://h/simple/my-demo/")
        assert (file.filename, file.sha256, file.metadata) == (NAME, SHA, "true")
        assert file.url == f"http://h/files/{SHA}/demo-1.0%2Blocal-py3-none-any.whl"


def test_names_are_normalised(client: Client, shelf: Shelf) -> None:
    assert client.ask("/simple/My_.demo/")[0].status == 200
    answer, _ = client.ask("/simple/My.Demo")
    assert (answer.status, answer.headers["Location"]) == (301, "my-demo/")
    assert client.ask("/simple/other/")[0].status == 404
    for name in ("%2e%2e%2fetc", "a%0d%0ab", "-", ".."):
        assert client.ask(f"/simple/{name}/")[0].status == 404
    assert shelf.asked == ["my-demo", "other"]


@pytest.mark.parametrize(
    "path", ["/", "/simple/", f"/files/{'cd' * 32}/x.whl", "/files/x/y.metadata"]
)
def test_what_is_not_there(client: Client, path: str) -> None:
    assert client.ask(path)[0].status == 404


def test_metadata_and_files_last_forever(client: Client, growing: Growing) -> None:
    growing.to(SIZE)
    answer, body = client.ask(f"{FILE}.metadata")
    assert body == METADATA and "immutable" in answer.headers["Cache-Control"]
    answer, body = client.ask(FILE)
    assert (answer.status, body) == (200, BYTES)
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["Accept-Ranges"] == "bytes"


def test_a_file_without_sha256_does_not_last(client: Client, growing: Growing) -> None:
    growing.to(SIZE)
    answer, _ = client.ask("/files/url-1/x.whl")
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")


def test_head_says_what_get_would(client: Client, growing: Growing) -> None:
    growing.to(SIZE)
    answer, body = client.ask(FILE, "HEAD")
    assert (answer.status, answer.headers["Content-Length"], body) == (200, str(SIZE), b"")
    answer, body = client.ask("/simple/my-demo/", "HEAD")
    assert answer.status == 200 and int(answer.headers["Content-Length"]) > 100
    assert client.ask(f"{FILE}.metadata")[1] == METADATA  # the connection is still in step


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("bytes=0-9", 0, 10), ("bytes=-7", SIZE - 7, SIZE), (f"bytes={SIZE - 2}-", SIZE - 2, SIZE)],
)
def test_ranges(client: Client, growing: Growing, asked: str, start: int, end: int) -> None:
    growing.to(SIZE)
    answer, body = client.ask(FILE, Range=asked)
    assert (answer.status, body) == (206, BYTES[start:end])
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{SIZE}"


def test_a_range_behind_the_end(client: Client, growing: Growing) -> None:
    growing.to(SIZE)
    answer, _ = client.ask(FILE, Range=f"bytes={SIZE}-")
    assert (answer.status, answer.headers["Content-Range"]) == (416, f"bytes */{SIZE}")


def test_a_range_of_another_file_gives_this_one_whole(client: Client, growing: Growing) -> None:
    growing.to(SIZE)
    tag = client.ask(FILE, "HEAD")[0].headers["ETag"]
    assert client.ask(FILE, Range="bytes=0-9", If_Range=tag)[0].status == 206
    assert client.ask(FILE, Range="bytes=0-9", If_Range='"other"')[1] == BYTES


def test_a_file_is_handed_on_while_it_grows(client: Client, growing: Growing) -> None:
    growing.to(500_000)
    client.connection.request("GET", client.base + FILE)
    answer = client.connection.getresponse()
    first = answer.read(400_000)  # before the rest has come
    growing.to(2_000_000)
    second = answer.read(1_500_000)
    growing.to(SIZE)
    assert first + second + answer.read() == BYTES


def test_a_transfer_that_fails_on_the_way_is_cut(
    client: Client, growing: Growing, server: IndexServer
) -> None:
    growing.to(500_000)
    client.connection.request("GET", client.base + FILE)
    answer = client.connection.getresponse()
    answer.read(100_000)
    error = FetchError("the host does not answer any more")
    growing.transfer.failed(error)
    with pytest.raises(http.client.IncompleteRead):
        answer.read()
    assert server.errors == [error]
    client.connection.close()
    answer, body = client.ask(FILE)  # as an installer asks again
    assert (answer.status, body) == (424, b"the host does not answer any more\n")
    assert server.errors == [error]


def test_what_a_view_raises_is_kept(client: Client, server: IndexServer, shelf: Shelf) -> None:
    shelf.error = CouldNotLook("the index is gone")
    answer, body = client.ask("/simple/my-demo/")
    assert (answer.status, body) == (424, b"the index is gone\n")
    assert server.errors == [shelf.error]
    assert client.ask(f"{FILE}.metadata")[0].status == 200


def test_a_bug_in_a_view_is_not_lost(shelf: Shelf) -> None:
    shelf.error = ZeroDivisionError("a bug")
    cut = (http.client.HTTPException, ConnectionError)
    with (
        pytest.raises(ZeroDivisionError),
        IndexServer(shelf) as server,
        pytest.raises(cut),
    ):
        Client(server).ask("/simple/my-demo/")


def raw(server: IndexServer, head: str) -> bytes:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode())
        return connection.recv(65536).partition(b"\r\n")[0]


def proxied(server: IndexServer, target: str, credentials: str = "") -> bytes:
    token = base64.b64encode(
        (credentials or urlsplit(server.proxy).netloc.rpartition("@")[0]).encode()
    )
    return raw(
        server,
        f"GET {target} HTTP/1.1\nHost: h\nProxy-Authorization: Basic {token.decode()}\n\n",
    )


def test_the_proxy_serves_the_name_that_never_changes(server: IndexServer) -> None:
    assert proxied(server, f"{INDEX_URL}my-demo/") == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "target", ["http://example.com/simple/my-demo/", "https://envcheck.invalid/x"]
)
def test_the_proxy_is_a_way_to_nowhere_else(server: IndexServer, target: str) -> None:
    assert proxied(server, target) == b"HTTP/1.1 403 Forbidden"
    assert raw(server, "CONNECT example.com:443 HTTP/1.1\n\n") == b"HTTP/1.1 403 Forbidden"


def test_without_the_secret_nothing_is_served(server: IndexServer, shelf: Shelf) -> None:
    for line in (
        "GET /simple/my-demo/",
        "GET /wrong/simple/my-demo/",
        "GET //simple/my-demo/",
        f"GET {INDEX_URL}my-demo/",
        "GET *",
        "GET http://[x/",  # which the standard library raises at
    ):
        assert raw(server, f"{line} HTTP/1.1\nHost: h\n\n") == b"HTTP/1.1 403 Forbidden"
    assert proxied(server, f"{INDEX_URL}my-demo/", "envcheck:guess") == b"HTTP/1.1 403 Forbidden"
    bad = f"GET {INDEX_URL}my-demo/ HTTP/1.1\nHost: h\nProxy-Authorization: Basic %%%\n\n"
    assert raw(server, bad) == b"HTTP/1.1 403 Forbidden"
    assert not shelf.asked


def test_a_body_is_not_taken_for_a_request(server: IndexServer, shelf: Shelf) -> None:
    path = urlsplit(server.url).path
    inner = f"GET {path}inner/ HTTP/1.1\r\nHost: h\r\n\r\n"
    head = f"GET {path}outer/ HTTP/1.1\r\nHost: h\r\nContent-Length: {len(inner)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        connection.sendall((head + inner).encode())
        while connection.recv(65536):
            pass
    assert shelf.asked == ["outer"]


def test_every_server_has_its_own_secret(shelf: Shelf) -> None:
    with IndexServer(shelf) as one, IndexServer(shelf) as other:
        assert one.secret != other.secret and len(one.secret) >= 32
        assert one.server_address[0] == "127.0.0.1"


def test_requests_are_counted(client: Client, server: IndexServer) -> None:
    for _ in range(3):
        client.ask("/simple/my-demo/")
    assert server.requests == 3


def test_a_client_that_goes_away_disturbs_nobody(
    server: IndexServer, client: Client, growing: Growing
) -> None:
    growing.to(SIZE)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as gone:
            gone.sendall(f"GET {client.base}{FILE} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            gone.recv(10)
    assert client.ask(FILE)[1] == BYTES
    assert server.errors == []


def test_it_stops_while_clients_wait(shelf: Shelf, growing: Growing) -> None:
    growing.to(100_000)
    before = threading.active_count()
    with IndexServer(shelf) as server:
        idle, waiting = Client(server), Client(server)
        idle.ask("/simple/my-demo/")
        waiting.connection.request("GET", waiting.base + FILE)
        waiting.connection.getresponse().read(1000)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        idle.ask("/simple/my-demo/")
    limit = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < limit:
        time.sleep(0.01)
    assert threading.active_count() <= before
