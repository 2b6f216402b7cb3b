"""One connection to the loopback index: HTTP/1.1, kept alive, read-only."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import quote, unquote, urlsplit

from packaging.utils import canonicalize_name

from ...exit_codes import EnvcheckError
from . import page, ranges
from .address import HOST
from .simple import JSON_TYPE, ProjectFile
from .views import key

if TYPE_CHECKING:
    from ..store.transfer import Transfer
    from .server import IndexServer

WAIT = 0.5  # seconds between looks whether the run has ended
PIECE = 1024 * 1024  # bytes handed to the kernel at once
# Neither uv nor pip tries again after it, and uv, unlike after 403 or 404, does not go on without the
# project (seen with uv 0.13, pip 18.1 and pip 23.2).
VIEW_FAILED = HTTPStatus.FAILED_DEPENDENCY
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")  # PEP 503's, normalised
FOREVER = "public, max-age=31536000, immutable"


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD for /simple/PROJECT/, /files/KEY/NAME and /files/KEY/NAME.metadata."""

    protocol_version = "HTTP/1.1"
    server_version = "envcheck"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024  # head and body of a small answer go out together

    def do_GET(self) -> None:
        server = cast("IndexServer", self.server)
        server.count()
        if self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding"):
            self.close_connection = True  # a body that nobody reads would be taken for a request
        path = self._allowed(server)
        if path is None:
            self._answer(HTTPStatus.FORBIDDEN, b"This index is for one installer alone.\n")
            return
        try:
            self._route(server, path)
        except EnvcheckError as error:
            server.failed(error)
            self._answer(VIEW_FAILED, f"{error}\n".encode())

    do_HEAD = do_GET

    def do_CONNECT(self) -> None:
        cast("IndexServer", self.server).count()
        self.close_connection = True
        self._answer(HTTPStatus.FORBIDDEN, b"This is an index, and a way to nowhere else.\n")

    def log_message(self, format: str, *args: object) -> None:
        """Requests are counted, not written: their paths hold the secret."""

    def _allowed(self, server: IndexServer) -> str | None:
        """The path without the secret; None for a client that does not know it."""
        if self.path.startswith("/"):
            secret, slash, path = self.path[1:].partition("/")
            return slash + path if _same(secret, server.secret) else None
        try:
            parts = urlsplit(self.path)
        except ValueError:  # anybody on this machine may send anything
            return None
        scheme, _, credentials = self.headers.get("Proxy-Authorization", "").partition(" ")
        if scheme.lower() != "basic" or not _same(
            _decoded(credentials), f"envcheck:{server.secret}"
        ):
            return None
        return parts.path if (parts.scheme, parts.netloc) == ("http", HOST) else None

    def _route(self, server: IndexServer, path: str) -> None:
        path = path.partition("?")[0]
        project = re.fullmatch(r"/simple/([^/]+)(/?)", path)
        file = re.fullmatch(r"/files/([^/]+)/([^/]+?)(\.metadata)?", path)
        name = canonicalize_name(unquote(project[1])) if project else ""
        if project and _NAME.fullmatch(name):
            self._project(server, name, slash=bool(project[2]))
        elif file and file[3]:
            self._metadata(server, file[1])
        elif file:
            self._file(server, file[1])
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"There is nothing here.\n")

    def _project(self, server: IndexServer, name: str, *, slash: bool) -> None:
        if not slash:  # the page's links are relative to its directory
            self._answer(HTTPStatus.MOVED_PERMANENTLY, b"", {"Location": f"{quote(name)}/"})
            return
        files = server.view.project(name)
        if files is None:
            self._answer(HTTPStatus.NOT_FOUND, b"There is no such project.\n")
            return
        accept = self.headers.get("Accept", "")
        if page.wants_json(accept):
            kind, body = JSON_TYPE, page.as_json(name, files, _link)
        else:
            kind, body = page.html_type(accept), page.as_html(name, files, _link)
        self._answer(
            HTTPStatus.OK,
            body,
            {"Content-Type": kind, "Cache-Control": "no-store", "Vary": "Accept"},
        )

    def _metadata(self, server: IndexServer, wanted: str) -> None:
        data = server.view.metadata(wanted)
        if data is None:
            self._answer(HTTPStatus.NOT_FOUND, b"There is no metadata of it.\n")
            return
        headers = {"Content-Type": "application/octet-stream", "Cache-Control": _lasting(wanted)}
        self._answer(HTTPStatus.OK, data, headers)

    def _file(self, server: IndexServer, wanted: str) -> None:
        transfer = server.view.file(wanted)
        if transfer is None:
            self._answer(HTTPStatus.NOT_FOUND, b"There is no such file.\n")
            return
        size = _size(server, transfer)
        asked = self.headers.get("Range", "")
        tag = f'"{wanted}"'
        if self.headers.get("If-Range", tag) != tag:
            asked = ""
        headers = {
            "Content-Type": "application/octet-stream",
            "Accept-Ranges": "bytes",
            "ETag": tag,
            "Cache-Control": _lasting(wanted),
        }
        try:
            span = ranges.parse(asked, size) if asked else None
        except ranges.Unsatisfiable:
            headers["Content-Range"] = f"bytes */{size}"
            self._answer(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, b"", headers)
            return
        start, length = span or (0, size)
        if span:
            headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{size}"
        status = HTTPStatus.PARTIAL_CONTENT if span else HTTPStatus.OK
        if self.command == "HEAD":
            self._head(status, length, headers)
            return
        with transfer.open() as content:
            self._head(status, length, headers)
            self._stream(server, transfer, content, start, start + length)

    def _stream(
        self, server: IndexServer, transfer: Transfer, content: BinaryIO, start: int, end: int
    ) -> None:
        """From the file on disk, while it grows there, to the socket, without a copy in Python."""
        self.wfile.flush()
        out, source = self.connection.fileno(), content.fileno()
        try:
            while start < end:
                there = min(_beyond(server, transfer, start), end)
                while start < there:
                    sent = os.sendfile(out, source, start, min(there - start, PIECE))
                    if not sent:
                        raise ConnectionAbortedError("the file has become shorter")
                    start += sent
        except EnvcheckError as error:
            # The head has gone out with the full length: only the cut tells the client.
            server.failed(error)
            self.close_connection = True

    def _answer(
        self, status: HTTPStatus, body: bytes, headers: dict[str, str] | None = None
    ) -> None:
        self._head(status, len(body), {"Content-Type": "text/plain"} | (headers or {}))
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def _head(self, status: HTTPStatus, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


def _beyond(server: IndexServer, transfer: Transfer, offset: int) -> int:
    """How many bytes of the file are there, once it is more than ``offset``."""
    while True:
        there = transfer.wait_beyond(offset, WAIT)
        if there > offset:
            return there
        if server.stopping or transfer.complete:
            raise ConnectionAbortedError("the run has ended")


def _size(server: IndexServer, transfer: Transfer) -> int:
    """Bytes of the whole file; for one whose server does not say, it is waited for."""
    while transfer.total is None and not transfer.complete:
        if server.stopping:
            raise ConnectionAbortedError("the run has ended")
        transfer.wait_beyond(transfer.available(), WAIT)
    if not transfer.complete:
        # Raises what it failed by, while there is still a status to say so with.
        transfer.wait_beyond(transfer.available(), 0.0)
    return transfer.available() if transfer.total is None else transfer.total


def _link(file: ProjectFile) -> str:
    return f"../../files/{key(file)}/{quote(file.filename)}"


def _lasting(wanted: str) -> str:
    """What is named by its sha256 never changes."""
    return FOREVER if re.fullmatch(r"[0-9a-f]{64}", wanted) else "no-store"


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def _decoded(credentials: str) -> str:
    try:
        return base64.b64decode(credentials, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
