"""Indexes that pack, redirect, ignore ranges, or are a login page: what the resolver sees of them."""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from index_server import Access, serve
from resolving import choice, isolate, locked, stack
from wheel_maker import wheel

from envcheck.exit_codes import CouldNotLook
from envcheck.install import processes
from envcheck.install.lockfile import LockedFile
from envcheck.install.wheels import uv, uv_watch

_autouse = pytest.fixture(autouse=True)(isolate)
NAME = "app-1.0-py3-none-any.whl"
Answer = tuple[int, dict[str, str], bytes]


class Odd(ThreadingHTTPServer):
    """Answers each path with what ``answers`` makes of the request's headers; all else is 404."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[dict[str, str]], Answer]] = {}
        self.asked: list[str] = []
        self.trickling: set[str] = (
            set()
        )  # paths that send a byte now and then, until the server ends
        self.ended = threading.Event()
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
        trickling = self.path in self.server.trickling
        self.send_header("Content-Length", str(1 << 20 if trickling else len(body)))
        self.end_headers()
        while trickling and not self.server.ended.wait(0.2):
            with suppress(ConnectionError):
                self.wfile.write(b" ")
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
        server.ended.set()
        server.shutdown()


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    return wheel(tmp_path / "files", "app", "1.0", payload=200_000).read_bytes()


def link(data: bytes, url: str = NAME) -> bytes:
    return f'<a href="{url}#sha256={hashlib.sha256(data).hexdigest()}">{NAME}</a>'.encode()


def lock(odd: Odd) -> LockedFile:
    (package,) = locked(choice(stack("app")), odd.url).packages
    return package.file


def test_an_index_that_redirects(odd: Odd, data: bytes) -> None:
    """As NVIDIA's first address does: links are relative to where the page came from."""
    odd.answers["/simple/app/"] = lambda _: (301, {"Location": "/redist/app/"}, b"")
    odd.page("/redist/app/", link(data))
    odd.page(f"/redist/app/{NAME}", data, Content_Type="application/octet-stream")
    file = lock(odd)
    assert file.url == f"http://127.0.0.1:{odd.server_port}/redist/app/{NAME}"
    assert file.size == len(data)  # which no page says


@pytest.mark.parametrize("kind", ["md5", "", "wrong"])
def test_without_a_sha256_the_file_is_fetched_once_to_lock_it(
    odd: Odd, data: bytes, kind: str
) -> None:
    told = {"md5": f"#md5={hashlib.md5(data).hexdigest()}", "": "", "wrong": f"#md5={'0' * 32}"}
    odd.page("/simple/app/", f'<a href="{NAME}{told[kind]}">{NAME}</a>'.encode())
    odd.page(f"/simple/app/{NAME}", data, Content_Type="application/octet-stream")
    if kind == "wrong":
        with pytest.raises(CouldNotLook, match="its index says 0000"):
            lock(odd)
        return
    file = lock(odd)
    assert (file.sha256, file.size) == (hashlib.sha256(data).hexdigest(), len(data))


def test_credentials_reach_uv_by_the_environment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path / "files", "app", "1.0", requires=["lib"])
    wheel(tmp_path / "files", "lib", "1.0")
    asked = uv.run_online
    started: list[str] = []

    def noted(arguments: list[object], env: dict[str, str], settings: Path, whose: str) -> object:
        folder = settings.parent
        started.append(" ".join(map(str, arguments)))
        started.extend(path.read_text() for path in folder.iterdir())
        return asked(arguments, env, settings, whose)  # type: ignore[arg-type]

    monkeypatch.setattr(uv, "run_online", noted)
    access = Access(user="joe", password="s3cret/word")
    with serve(tmp_path / "files", tmp_path / "index", access=access) as site:
        found = locked(choice(stack("app")), site.url_with_credentials)
        assert [package.index for package in found.packages] == [site.url] * 2
        assert not [text for text in started if "s3cret" in text]
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login joe password s3cret/word\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert locked(choice(stack("app")), site.url).packages == found.packages


def test_a_page_that_trickles_comes_to_an_end(odd: Odd, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv waits for ever: each byte is within its timeout."""
    monkeypatch.setattr(uv_watch, "SILENCE", 3.0)
    odd.answers["/simple/app/"] = lambda _: (200, {"Content-Type": "text/html"}, b"")
    odd.trickling.add("/simple/app/")
    with pytest.raises(
        CouldNotLook, match=r"the index 127\.0\.0\.1:\d+ sent no complete page in 3 s"
    ):
        locked(choice(stack("app")), odd.url)


def test_a_page_that_needs_gigabytes_is_refused(odd: Odd, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 MB of gzip; uv takes 2.5 GiB before it refuses that itself."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(b"<!DOCTYPE html>") + b"".join(
        packer.compress(bytes(b" " * (1 << 20))) for _ in range(1024)
    )
    odd.page("/simple/app/", packed + packer.flush(), Content_Encoding="gzip")
    seen: list[int] = []
    resident = processes.resident
    monkeypatch.setattr(processes, "resident", lambda pid: seen.append(resident(pid)) or seen[-1])
    with pytest.raises(
        CouldNotLook, match=r"the index 127\.0\.0\.1:\d+ answers is too large: uv needs"
    ):
        locked(choice(stack("app")), odd.url)
    assert max(seen[:-1]) <= uv_watch.MEMORY < seen[-1]
