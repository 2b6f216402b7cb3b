"""A server on loopback that serves files well or badly, as told; every request is kept.

with BadServer() as server:
    url = server.file("/files/a.whl", data)
    server.behave("/files/a.whl", Way(cut_after=20_000), Way(status=503))
    ...
``gate`` gives the WWW-Authenticate header of a 401. Requests in absolute form (a client that uses it as its
proxy) are served by their path too, and what they named stands in ``seen``.
``BadServer(tls=(certificate, key))`` speaks TLS.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PIECE = 64 * 1024
CAPTIVE = b"<!DOCTYPE html><html><head><title>Please log in</title></head><body>Wi-Fi</body></html>"


@dataclass(kw_only=True)
class Way:
    """How a request is answered; what is not said is done well. Offsets and lengths in bytes."""

    times: int | None = 1
    status: int = 200  # any other one is the answer, with ``content``, or a short text
    headers: dict[str, str] = field(default_factory=dict)  # added to the answer's
    cut_after: int | None = None  # of this answer's body: then the connection is closed
    rate: float | None = None  # bytes per second
    wrong_at: int | None = None  # this byte of the file is another one
    declared: int | None = None  # Content-Length, whatever is sent
    length: bool = True  # False: no Content-Length; the body ends with the connection
    content: bytes | None = None  # other content
    content_type: str | None = None
    redirect: str = ""  # the Location of a 302


CAPTIVE_PORTAL = Way(times=None, content=CAPTIVE, content_type="text/html")
WELL = Way(times=None)


@dataclass(frozen=True)
class Seen:
    """One request."""

    path: str
    target: str  # as sent: in absolute form where the server is used as a proxy
    headers: dict[str, str]  # names in lower case


@dataclass
class _File:
    data: bytes
    content_type: str
    ways: list[Way] = field(default_factory=list)
    sent: int = 0


class BadServer:
    """A context manager; ``url`` has no slash at the end."""

    def __init__(self, *, tls: tuple[Path, Path] | None = None) -> None:
        self.gate: Callable[[Seen], str] = lambda seen: ""
        self.closing = threading.Event()
        self._files: dict[str, _File] = {}
        self._seen: list[Seen] = []
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.bad = self
        self.port: int = self._http.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._http.socket = context.wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> BadServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cut every connection, and stop listening: a server that died."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._http.cut_all()
        self._thread.join()

    def file(
        self, path: str, data: bytes, *, content_type: str = "application/octet-stream"
    ) -> str:
        """Serve these bytes under the path; returns the URL. Called again, the file has changed."""
        with self._lock:
            old = self._files.get(path, _File(b"", ""))
            self._files[path] = _File(data, content_type, old.ways, old.sent)
        return self.url + path

    def behave(self, path: str, *ways: Way) -> None:
        """Answer the next requests for the path in these ways; replaces what was said before."""
        with self._lock:
            self._files.setdefault(path, _File(b"", "text/plain")).ways = [
                Way(**vars(way)) for way in ways
            ]

    def sent(self, path: str) -> int:
        """Bytes of bodies given to the network for the path; the client may have received fewer."""
        return self._files[path].sent

    def seen(self, path: str = "") -> list[Seen]:
        """The requests for the path, or all, in order."""
        with self._lock:
            return [seen for seen in self._seen if path in ("", seen.path)]

    def _next(self, seen: Seen, *, refused: bool) -> tuple[_File, Way] | None:
        with self._lock:
            self._seen.append(seen)
            file = self._files.get(seen.path)
            if file is None or refused:
                return None
            way = file.ways[0] if file.ways else WELL
            if way.times is not None:
                way.times -= 1
                if not way.times:
                    file.ways.pop(0)
            return file, way


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    bad: BadServer

    def __init__(self, *arguments: Any) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def cut_all(self) -> None:
        for request in list(self._open):
            with contextlib.suppress(OSError):  # gone already
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:  # type: ignore[override]
        """A client that went away is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = 60  # for a client that never says anything

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(urlsplit(self.path).path, self.path, headers)
        bad = self.server.bad
        wanted = bad.gate(seen)
        found = bad._next(seen, refused=bool(wanted))
        if wanted:
            self._say(401, {"WWW-Authenticate": wanted})
        elif found is None:
            self._say(404, {})
        else:
            self._answer(*found)

    do_HEAD = do_GET
    do_CONNECT = do_GET

    def _say(
        self, status: int, headers: dict[str, str], content: bytes | None = None, kind: str = ""
    ) -> None:
        body = f"the answer is {status}\n".encode() if content is None else content
        whole = {"Content-Type": kind or "text/plain", "Content-Length": str(len(body)), **headers}
        self._head(status, whole)
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _answer(self, file: _File, way: Way) -> None:
        if way.redirect:
            self._say(302, {"Location": way.redirect, **way.headers})
            return
        if way.status != 200:
            self._say(way.status, way.headers, way.content, way.content_type or "")
            return
        data = bytearray(file.data if way.content is None else way.content)
        headers = {"Content-Type": way.content_type or file.content_type, "Connection": "close"}
        if way.length:
            declared = len(data) if way.declared is None else way.declared
            headers |= {"Content-Length": str(declared), "Connection": "keep-alive"}
        self._head(200, headers | way.headers)
        if way.wrong_at is not None:
            data[way.wrong_at] ^= 255
        if self.command != "HEAD":
            self._body(file, way, memoryview(data))

    def _body(self, file: _File, way: Way, body: memoryview) -> None:
        limited = body if way.cut_after is None else body[: way.cut_after]
        piece = PIECE if way.rate is None else max(1, min(PIECE, int(way.rate / 20)))
        if len(limited) < len(body) or way.rate:  # what the kernel holds back is not received
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * 1024)
        started = time.monotonic()
        for at in range(0, len(limited), piece):
            if self.server.bad.closing.is_set():
                break
            part = limited[at : at + piece]
            self.wfile.write(part)
            with self.server.bad._lock:
                file.sent += len(part)
            if way.rate:
                due = started + (at + len(part)) / way.rate
                self.server.bad.closing.wait(max(0.0, due - time.monotonic()))
        if len(limited) < len(body) or not way.length or way.declared is not None:
            self.close_connection = True
