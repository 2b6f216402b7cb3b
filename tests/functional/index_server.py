"""A package index on loopback with real HTTP semantics: ranges, entity tags, negotiation, accounts.

with serve(folder_of_wheels, tmp_path / "index") as index:
    index.url          # "http://127.0.0.1:PORT/simple/"
    index.requests()   # what was asked: method, path, status, bytes sent, range
"""

from __future__ import annotations

import base64
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from index_site import JSON_TYPE, Offer, Site

CHUNK = 1 << 16
TYPES = {".html": "text/html", ".json": JSON_TYPE}


@dataclass(frozen=True, kw_only=True)
class Access:
    """How the index is reached."""

    user: str = ""  # basic auth
    password: str = ""
    rate: int = 0  # bytes per second and connection for files; 0: as fast as it goes


@dataclass
class Request:
    method: str
    path: str
    status: int
    sent: int  # bytes of the body
    range: str


class Index:
    """A running index."""

    def __init__(self, site: Site, access: Access, server: _Server) -> None:
        self.site = site
        self.access = access
        self._server = server
        self.port: int = server.server_address[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.origin}/simple/"

    @property
    def url_with_credentials(self) -> str:
        account = f"{quote(self.access.user, '')}:{quote(self.access.password, '')}@"
        return self.url.replace("://", f"://{account}", 1)

    def refresh(self) -> None:
        """After files were added to the folder, or replaced."""
        self.site.write()

    def requests(self) -> list[Request]:
        """Everything that is or was answered so far."""
        return list(self._server.answered)

    def asked(self, part: str) -> list[Request]:
        """Those whose path contains ``part``."""
        return [request for request in self.requests() if part in request.path]


@contextmanager
def serve(
    files: Path, folder: Path, *, offer: Offer | None = None, access: Access | None = None
) -> Iterator[Index]:
    """Serve the wheels and sdists in ``files``; ``folder`` is for the index's own files."""
    offer, access = offer or Offer(), access or Access()
    site = Site(files, folder / "site", offer)
    site.write()
    server = _Server(site, access)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield Index(site, access, server)
    finally:
        server.shutdown()
        thread.join()
        server.socket.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, site: Site, access: Access) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.site = site
        self.rate = access.rate
        account = base64.b64encode(f"{access.user}:{access.password}".encode()).decode()
        self.login = f"Basic {account}" if access.user else ""
        self.answered: list[Request] = []

    def handle_error(self, request: object, client_address: object) -> None:  # type: ignore[override]
        """A client that goes away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.server.login and self.headers.get("Authorization") != self.server.login:
            self._head(401, {"WWW-Authenticate": 'Basic realm="index"'})
            return
        if path.startswith("/simple/") and path.endswith("/"):
            as_json = self.server.site.offer.json and JSON_TYPE in self.headers.get("Accept", "")
            path += "index.json" if as_json else "index.html"
        file = self.server.site.root / path.lstrip("/")
        if ".." in file.parts or not file.exists():
            self._head(404)
        elif file.is_dir():
            self._head(301, {"Location": path + "/"})
        else:
            self._send(file)

    def _head(self, status: int, headers: dict[str, str] | None = None) -> Request:
        """The answer without its body; the request is noted before the client knows."""
        path, part = unquote(urlsplit(self.path).path), self.headers.get("Range", "")
        noted = Request(self.command, path, status, 0, part)
        self.server.answered.append(noted)
        self.send_response(status)
        for name, value in {"Content-Length": "0", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        return noted

    def _send(self, file: Path) -> None:
        state = file.stat()
        tag = f'"{int(state.st_mtime):x}-{state.st_size:x}"'
        if self.headers.get("If-None-Match") == tag:
            self._head(304, {"ETag": tag})
            return
        part = self._part(state.st_size, tag)
        if part is None:
            self._head(416, {"Content-Range": f"bytes */{state.st_size}"})
            return
        first, end, status = part
        headers = {
            "Content-Type": TYPES.get(file.suffix, "application/octet-stream"),
            "Content-Length": str(end - first),
            "ETag": tag,
            "Last-Modified": formatdate(state.st_mtime, usegmt=True),
            "Accept-Ranges": "bytes",
            "Vary": "Accept",
        }
        if status == 206:
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{state.st_size}"
        noted = self._head(status, headers)
        if self.command != "HEAD":
            self._copy(noted, file, first, end)

    def _part(self, size: int, tag: str) -> tuple[int, int, int] | None:
        """(first byte, byte after the last, status); None: no such range. One range alone is honoured."""
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if match is None or self.headers.get("If-Range", tag) != tag:
            return 0, size, 200
        start, last = match.groups()
        if not start:
            if not last or not int(last):
                return None
            return max(0, size - int(last)), size, 206
        end = min(size, int(last) + 1) if last else size
        return (int(start), end, 206) if int(start) < end else None

    def _copy(self, noted: Request, file: Path, first: int, end: int) -> None:
        rate = self.server.rate if file.parent.name == "files" else 0
        size = min(CHUNK, max(1, rate // 20)) if rate else CHUNK
        with file.open("rb") as source:
            source.seek(first)
            while first < end:
                chunk = source.read(min(size, end - first))
                noted.sent += len(chunk)
                self.wfile.write(chunk)
                first += len(chunk)
                if rate:
                    time.sleep(len(chunk) / rate)
