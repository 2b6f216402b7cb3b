"""Indexes that pack, redirect, ignore ranges, or are a login page: what the resolver sees of them."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from index_worlds import Opened, opened, resolve
from wheel_maker import wheel

from envcheck.install.index.simple import IndexBroken

NAME = "app-1.0-py3-none-any.whl"
Answer = tuple[int, dict[str, str], bytes]


class Odd(ThreadingHTTPServer):
    """Answers each path with what ``answers`` makes of the request's headers; all else is 404."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[dict[str, str]], Answer]] = {}
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple/"

    def page(self, path: str, body: bytes, **headers: str) -> None:
        told = {"Content-Type": "text/html"} | {k.replace("_", "-"): v for k, v in headers.items()}
        self.answers[path] = lambda _: (200, told, body)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Odd

    def do_GET(self) -> None:
        self.server.asked.append(
            f"{self.command} {self.path} {self.headers.get('Range', '')}".strip()
        )
        make = self.server.answers.get(self.path, lambda _: (404, {}, b""))
        status, headers, body = make(dict(self.headers))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def odd() -> Iterator[Odd]:
    with Odd() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def there(odd: Odd, tmp_path: Path) -> Iterator[Opened]:
    with opened(odd.url, tmp_path) as made:
        yield made


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    return wheel(tmp_path / "files", "app", "1.0", payload=200_000).read_bytes()


def link(data: bytes, url: str = NAME) -> bytes:
    return f'<a href="{url}#sha256={hashlib.sha256(data).hexdigest()}">x</a>'.encode()


def test_a_page_that_comes_packed(odd: Odd, there: Opened, data: bytes) -> None:
    odd.page("/simple/app/", gzip.compress(link(data)), Content_Encoding="gzip")
    assert [file.filename for file in there.index.project("app") or []] == [NAME]


def test_an_index_that_redirects(odd: Odd, there: Opened, data: bytes) -> None:
    """As NVIDIA's first address does: links are relative to where the page came from."""
    odd.answers["/simple/app/"] = lambda _: (301, {"Location": "/redist/app/"}, b"")
    odd.page("/redist/app/", link(data))
    (file,) = there.index.project("app") or []
    assert file.url == f"http://127.0.0.1:{odd.server_port}/redist/app/{NAME}"


def test_a_server_without_ranges_gives_the_wheel_once(
    odd: Odd, there: Opened, data: bytes, tmp_path: Path
) -> None:
    odd.page("/simple/app/", link(data))
    odd.page(f"/simple/app/{NAME}", data, Content_Type="application/octet-stream")
    assert resolve(there.server, tmp_path, "app").returncode == 0
    key = hashlib.sha256(data).hexdigest()
    assert there.store.has(
        key
    )  # what had to be fetched for its METADATA is there for the installation
    assert there.index.pin([key])[key].file.size == len(data)


def test_a_login_page_is_told_as_one(odd: Odd, there: Opened, tmp_path: Path) -> None:
    odd.page("/simple/app/", b"<title>Sign in</title><form><input name=user></form>")
    assert resolve(there.server, tmp_path, "app").returncode != 0
    (error,) = there.server.errors
    assert isinstance(error, IndexBroken) and "Sign in" in str(error)
    assert f"{odd.url}app/ answers a web page" in str(error)
    assert there.server.requests == 1


def test_metadata_that_is_not_what_was_announced(
    odd: Odd, there: Opened, data: bytes, tmp_path: Path
) -> None:
    page = link(data).replace(b">x<", b' data-core-metadata="sha256=' + b"ab" * 32 + b'">x<')
    odd.page("/simple/app/", page)
    odd.page(f"/simple/app/{NAME}.metadata", b"Metadata-Version: 2.1\nName: app\nVersion: 1.0\n")
    assert resolve(there.server, tmp_path, "app").returncode != 0
    (error,) = there.server.errors
    assert isinstance(error, IndexBroken) and "ab" * 32 in str(error)
    assert odd.asked[-1].startswith("GET") and len(odd.asked) == 2
