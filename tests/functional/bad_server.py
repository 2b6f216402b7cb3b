"""A loopback HTTP server that misbehaves on demand, path by path, and counts what it sent.

    with BadServer() as server:
        url = server.file("/files/a.whl", data)          # served well: ranges, ETag, HEAD, keep-alive
        server.behave("/files/a.whl", Way(cut_after=20_000, times=2), Way(status=503))
        ...
        assert server.sent("/files/a.whl") < 2 * len(data)
        assert [seen.range for seen in server.seen("/files/a.whl")] == ["", "bytes=20000-", ...]

Each Way serves ``times`` requests, in the order given; after the last one the path behaves again.
``times=None`` is for ever. ``server.users = {"user": "password"}`` asks every request for one of them;
``server.gate`` is told every request, and gives "" or the WWW-Authenticate header of a 401.
Requests in absolute form (a client that uses it as its proxy) are served by their path too, and what
they named stands in ``seen``. ``BadServer(tls=(certificate, key))`` speaks TLS.
"""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

PIECE = 64 * 1024
CAPTIVE = b"<!DOCTYPE html><html><head><title>Please log in</title></head><body>Wi-Fi</body></html>"


@dataclass(kw_only=True)
class Way:
    """How a request is answered; what is not said is done well. Offsets and lengths in bytes."""

    times: int | None = 1
    status: int = 200  # any other one is the answer, with ``content``, or a short text
    headers: dict[str, str] = field(default_factory=dict)  # added to the answer's
    delay: float = 0.0  # seconds before the answer's first byte
    cut_after: int | None = None  # of this answer's body: then the connection is closed
    reset: bool = False  # ... by RST
    stall_after: int | None = None  # of this answer's body: then nothing, until the server closes
    rate: float | None = None  # bytes per second
    wrong_at: int | None = None  # this byte of the file is another one
    declared: int | None = None  # Content-Length, whatever is sent
    length: bool = True  # False: no Content-Length; the body ends with the connection
    ranges: bool = True  # False: a range is ignored, and the whole file sent with 200
    at_most: int | None = None  # bytes in the answer to a range
    shifted: int = 0  # a range's body begins so many bytes later than Content-Range says
    content: bytes | None = None  # other content
    etag: str | None = None  # another ETag; "" is none
    content_type: str | None = None
    redirect: str = ""  # the Location of a 302
    before: threading.Event | None = None  # waited for before the answer's first byte


CAPTIVE_PORTAL = Way(times=None, content=CAPTIVE, content_type="text/html", etag="", ranges=False)
WELL = Way(times=None)


@dataclass(frozen=True)
class Seen:
    """One request."""

    method: str
    path: str
    target: str  # as sent: in absolute form where the server is used as a proxy
    headers: dict[str, str]  # names in lower case
    at: float  # time.monotonic()

    @property
    def range(self) -> str:
        return self.headers.get("range", "")


@dataclass
class _File:
    data: bytes
    etag: str
    content_type: str
    ways: list[Way] = field(default_factory=list)
    sent: int = 0


class BadServer:
    """A context manager; ``url`` has no slash at the end."""

    def __init__(self, *, tls: tuple[Path, Path] | None = None, port: int = 0) -> None:
        self.users: dict[str, str] = {}
        self.gate: Callable[[Seen], str] = lambda seen: ""
        self.closing = threading.Event()
        self._files: dict[str, _File] = {}
        self._seen: list[Seen] = []
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", port), _Handler)
        self._http.bad = self
        self.port: int = self._http.server_address[1]
        self._scheme = "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._http.socket = context.wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False
            )
            self._scheme = "https"
        self.url = f"{self._scheme}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> BadServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cut every connection, and stop listening: a server that died."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._http.cut_all()
        self._thread.join()

    def file(
        self,
        path: str,
        data: bytes,
        *,
        etag: str | None = None,
        content_type: str = "application/octet-stream",
    ) -> str:
        """Serve these bytes under the path; returns the URL. Called again, the file has changed."""
        if etag is None:
            etag = f'"{sha256(data).hexdigest()[:16]}"'
        with self._lock:
            old = self._files.get(path)
            self._files[path] = _File(data, etag, content_type, old.ways if old else [])
            self._files[path].sent = old.sent if old else 0
        return self.url + path

    def behave(self, path: str, *ways: Way) -> None:
        """Answer the next requests for the path in these ways; replaces what was said before."""
        with self._lock:
            self._files.setdefault(path, _File(b"", "", "text/plain")).ways = [
                Way(**vars(way)) for way in ways
            ]

    @property
    def connections(self) -> int:
        """How many were accepted so far."""
        return self._http.accepted

    def sent(self, path: str) -> int:
        """Bytes of bodies given to the network for the path; the client may have received fewer."""
        return self._files[path].sent

    def seen(self, path: str = "") -> list[Seen]:
        """The requests for the path, or all, in order."""
        with self._lock:
            return [seen for seen in self._seen if path in ("", seen.path)]

    def _note(self, seen: Seen) -> None:
        with self._lock:
            self._seen.append(seen)

    def _next(self, seen: Seen) -> tuple[_File, Way] | None:
        with self._lock:
            self._seen.append(seen)
            file = self._files.get(seen.path)
            if file is None:
                return None
            while file.ways:
                way = file.ways[0]
                if way.times is None:
                    return file, way
                way.times -= 1
                if way.times <= 0:
                    file.ways.pop(0)
                if way.times >= 0:
                    return file, way
            return file, WELL


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    bad: BadServer

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        self.accepted = 0
        super().__init__(address, handler)

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        self._open.add(request)
        self.accepted += 1
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
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
        path = urlsplit(self.path).path
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, path, self.path, headers, time.monotonic())
        wanted = self.server.bad.gate(seen)
        if wanted:
            self.server.bad._note(seen)
            self._say(401, {"WWW-Authenticate": wanted})
            return
        found = self.server.bad._next(seen)
        if not self._allowed(headers):
            self._say(401, {"WWW-Authenticate": 'Basic realm="tests"'})
        elif found is None:
            self._say(404, {})
        else:
            self._answer(*found)

    do_HEAD = do_GET
    do_CONNECT = do_GET

    def _allowed(self, headers: dict[str, str]) -> bool:
        users = self.server.bad.users
        given = headers.get("authorization", "").removeprefix("Basic ")
        known = {
            base64.b64encode(f"{user}:{word}".encode()).decode() for user, word in users.items()
        }
        return not users or given in known

    def _say(
        self, status: int, headers: dict[str, str], content: bytes | None = None, kind: str = ""
    ) -> None:
        body = f"the answer is {status}\n".encode() if content is None else content
        self.send_response(status)
        for name, value in {"Content-Type": kind or "text/plain", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _answer(self, file: _File, way: Way) -> None:
        if way.before is not None:
            way.before.wait(60)
        self.server.bad.closing.wait(way.delay)
        if way.redirect:
            self._say(302, {"Location": way.redirect, **way.headers})
            return
        if way.status != 200:
            self._say(way.status, way.headers, way.content, way.content_type or "")
            return
        data = file.data if way.content is None else way.content
        etag = file.etag if way.etag is None else way.etag
        first, last, status = self._part(len(data), etag) if way.ranges else (0, len(data), 200)
        if status == 416:
            self._say(416, {"Content-Range": f"bytes */{len(data)}"})
            return
        if status == 206 and way.at_most is not None:
            last = min(last, first + way.at_most)
        self.send_response(status)
        self.send_header("Content-Type", way.content_type or file.content_type)
        if etag:
            self.send_header("ETag", etag)
        if way.ranges:
            self.send_header("Accept-Ranges", "bytes")
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last - 1}/{len(data)}")
        if way.length:
            declared = last - first if way.declared is None else way.declared
            self.send_header("Content-Length", str(declared))
        else:
            self.send_header("Connection", "close")
        for name, value in way.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if way.wrong_at is not None and first <= way.wrong_at < last:
            data = b"%s%c%s" % (
                data[: way.wrong_at],
                data[way.wrong_at] ^ 255,
                data[way.wrong_at + 1 :],
            )
        self._body(file, way, memoryview(data)[first + way.shifted : last])

    def _part(self, size: int, etag: str) -> tuple[int, int, int]:
        """First byte, the one after the last, and the status."""
        wanted = self.headers.get("Range", "")
        unchanged = self.headers.get("If-Range", etag) == etag
        if not wanted.startswith("bytes=") or "," in wanted or not unchanged:
            return 0, size, 200
        low, _, high = wanted.removeprefix("bytes=").partition("-")
        if not low:
            return max(0, size - int(high)), size, 206
        if int(low) >= size:
            return 0, 0, 416
        return int(low), min(size, int(high) + 1) if high else size, 206

    def _body(self, file: _File, way: Way, body: memoryview) -> None:
        marks = [mark for mark in (way.cut_after, way.stall_after) if mark is not None]
        limited = body[: min(marks)] if marks else body
        piece = PIECE if way.rate is None else max(1, min(PIECE, int(way.rate / 20)))
        if marks or way.rate:  # what the kernel holds back is not received
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
        if way.stall_after is not None and way.stall_after < len(body):
            self.server.bad.closing.wait(600)
        if marks or not way.length or way.declared is not None or way.shifted:
            self.close_connection = True
        if way.reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
