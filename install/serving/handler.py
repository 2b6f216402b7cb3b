"""One connection of a loopback server: HTTP/1.1, kept alive, read-only, with files that may still grow."""

from __future__ import annotations

import hmac
import os
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, BinaryIO, cast

from ...exit_codes import EnvcheckError
from . import ranges

if TYPE_CHECKING:
    from ..store.transfer import Transfer
    from .server import LoopbackServer

WAIT = 0.5  # seconds between looks whether the run has ended
PIECE = 1024 * 1024  # bytes handed to the kernel at once


class FileHandler(BaseHTTPRequestHandler):
    """What every such server does alike; what is asked for is the subclass's matter."""

    protocol_version = "HTTP/1.1"
    server_version = "envcheck"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024  # head and body of a small answer go out together

    def log_message(self, format: str, *args: object) -> None:
        """Requests are counted, not written: their paths hold the secret."""

    def _ignore_body(self) -> None:
        """A body that nobody reads would be taken for a request."""
        if self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding"):
            self.close_connection = True

    def _send_file(self, transfer: Transfer, size: int, name: str, headers: dict[str, str]) -> None:
        """All of a file of this size in bytes, or the range that is asked for. name: its ETag.

        Raises the FetchError of a file that will not come, if that is known before the answer begins.
        """
        asked = self.headers.get("Range", "")
        tag = f'"{name}"'
        if self.headers.get("If-Range", tag) != tag:
            asked = ""
        headers = {**headers, "Accept-Ranges": "bytes", "ETag": tag}
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
            self._stream(transfer, content, start, start + length)

    def _stream(self, transfer: Transfer, content: BinaryIO, start: int, end: int) -> None:
        """From the file on disk, while it grows there, to the socket, without a copy in Python."""
        server = cast("LoopbackServer", self.server)
        self.wfile.flush()
        out, source = self.connection.fileno(), content.fileno()
        try:
            while start < end:
                there = min(_beyond(server, transfer, start), end)
                while start < there:
                    at = transfer.offset + start
                    sent = os.sendfile(out, source, at, min(there - start, PIECE))
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


def size_of(server: LoopbackServer, transfer: Transfer) -> int:
    """Bytes of the whole file; for one whose server does not say, it is waited for."""
    while transfer.total is None and not transfer.complete:
        if server.stopping:
            raise ConnectionAbortedError("the run has ended")
        transfer.wait_beyond(transfer.available(), WAIT)
    if not transfer.complete:
        # Raises what it failed by, while there is still a status to say so with.
        transfer.wait_beyond(transfer.available(), 0.0)
    return transfer.available() if transfer.total is None else transfer.total


def is_same(given: str, expected: str) -> bool:
    """Compares secrets, in a time that tells nothing."""
    return hmac.compare_digest(given.encode(), expected.encode())


def _beyond(server: LoopbackServer, transfer: Transfer, offset: int) -> int:
    """How many bytes of the file are there, once it is more than ``offset``."""
    while True:
        there = transfer.wait_beyond(offset, WAIT)
        if there > offset:
            return there
        if server.stopping or transfer.complete:
            raise ConnectionAbortedError("the run has ended")
