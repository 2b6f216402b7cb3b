"""Servers that send a byte now and then: silence is never long, and yet they do not hold anybody up."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from envcheck.install.lockfile import LockedFile
from envcheck.install.network import transport
from envcheck.install.network.errors import HttpError
from envcheck.install.network.retries import retry_policy
from envcheck.install.network.session import Session
from envcheck.install.store.errors import FetchError
from envcheck.install.store.fetch import Fetcher
from envcheck.install.store.store import Store

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
LENGTH = HEAD + b"Content-Length: 100000\r\n\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = HEAD + b"\r\n"


@contextlib.contextmanager
def trickling(at_once: bytes, then: bytes) -> Iterator[str]:
    """Sends one part at once, and of the other a byte every 20 ms, again and again."""
    stop = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(4096)
            connection.sendall(at_once)
            while not stop.is_set():
                for byte in then:
                    connection.sendall(bytes([byte]))
                    if stop.wait(0.02):
                        return

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/page"
        finally:
            stop.set()
            listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("at_once", "then"),
    [
        (b"", b"HTTP/1.1 200 OK" + b" " * 1000),
        (HEAD, b"X-More: x\r\n"),
        (LENGTH, b"x"),
        (ENDLESS, b"x"),
        (CHUNKED, b"1\r\nx\r\n"),
        (CHUNKED, b"1; extension=" + b"x" * 1000),
        (CHUNKED + b"1\r\nx\r\n0\r\n", b"X-Trailer: x\r\n"),
    ],
)
def test_what_trickles_ends(at_once: bytes, then: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_PAGE_SECONDS", 0.4)
    with (
        trickling(at_once, then) as url,
        Session(retries=retry_policy(attempts=2, first=0.0)) as session,
        pytest.raises(HttpError, match="does not answer any more"),
    ):
        session.get(url, timeout=0.2)


def test_a_file_that_trickles_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_SLOWEST", 0.4)
    head = LENGTH.replace(b"text/html", b"application/zip")
    quick = retry_policy(attempts=2, first=0.0)
    with (
        trickling(head, b"x") as url,
        Session() as session,
        Fetcher(Store(tmp_path), session, retries=quick) as fetcher,
        pytest.raises(FetchError, match="does not answer any more"),
    ):
        fetcher.want(LockedFile(name="w.whl", url=url, sha256="0" * 64, size=100_000))
        fetcher.wait()
