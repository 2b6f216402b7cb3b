"""The index's HTTP server where nginx is not installed: ranges, entity tags, negotiation, accounts, TLS."""

from __future__ import annotations

import base64
import itertools
import json
import re
import socket
import ssl
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from certificates import Certificates
from index_site import JSON_TYPE

CHUNK = 1 << 16
TYPES = {".html": "text/html", ".json": JSON_TYPE}


class Log:
    """One line of JSON a request, in the order in which their clients had the answers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._answered: set[int] = set()  # whose clients may go on, and that are not written yet

    def number(self) -> int:
        """Of a request that begins."""
        return next(self._numbers)

    def answered(self, number: int) -> None:
        """The last of the answer is about to be sent."""
        with self._changed:
            self._answered.add(number)

    def write(self, number: int, record: dict[str, Any]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not any(n < number for n in self._answered))
            with self._path.open("a") as file:
                file.write(json.dumps(record) + "\n")
            self._answered.discard(number)
            self._changed.notify_all()


class PythonServer:
    def __init__(
        self,
        listening: socket.socket,
        root: Path,
        log: Log,
        account: str,
        tls: Certificates | None,
        rate: int,
        answers_json: bool,
    ) -> None:
        class Handler(_Handler):
            pass

        Handler.root, Handler.log, Handler.account = root, log, account
        Handler.rate, Handler.answers_json = rate, answers_json
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self._server.socket.close()
        # A copy: the caller closes its own.
        self._server.socket = listening.dup()
        self._server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.certificate, tls.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.socket.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path
    log: Log
    account: str
    rate: int
    answers_json: bool

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.sent = 0
        self.number = self.log.number()
        status = 500
        try:
            status = self._answer(path)
        except (ConnectionError, ssl.SSLError):
            self.close_connection = True
        finally:
            self.log.write(
                self.number,
                {
                    "method": self.command,
                    "path": self.path,
                    "status": status,
                    "sent": self.sent,
                    "range": self.headers.get("Range", ""),
                    "accept": self.headers.get("Accept", ""),
                    "agent": self.headers.get("User-Agent", ""),
                },
            )

    def _answer(self, path: str) -> int:
        if path.startswith("/fence/"):
            return self._empty(204)
        if not self._known():
            return self._empty(401, {"WWW-Authenticate": 'Basic realm="index"'})
        if path.startswith("/simple/") and path.endswith("/"):
            accept = self.headers.get("Accept", "")
            page = "index.json" if self.answers_json and JSON_TYPE in accept else "index.html"
            path += page
        file = self.root / path.lstrip("/")
        if ".." in file.parts or not file.exists():
            return self._empty(404)
        if file.is_dir():
            return self._empty(301, {"Location": path + "/"})
        return self._send(file)

    def _known(self) -> bool:
        expected = "Basic " + base64.b64encode(self.account.encode()).decode()
        return not self.account or self.headers.get("Authorization") == expected

    def _empty(self, status: int, headers: dict[str, str] | None = None) -> int:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.log.answered(self.number)
        self.end_headers()
        return status

    def _send(self, file: Path) -> int:
        state = file.stat()
        tag = f'"{int(state.st_mtime):x}-{state.st_size:x}"'
        if self.headers.get("If-None-Match") == tag:
            return self._empty(304, {"ETag": tag})
        part = self._part(state.st_size, tag)
        if part is None:
            return self._empty(416, {"Content-Range": f"bytes */{state.st_size}"})
        first, end, status = part
        self.send_response(status)
        self.send_header("Content-Type", TYPES.get(file.suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(end - first))
        self.send_header("ETag", tag)
        self.send_header("Last-Modified", formatdate(state.st_mtime, usegmt=True))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Vary", "Accept")
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{state.st_size}")
        if self.command == "HEAD" or first == end:
            self.log.answered(self.number)
        self.end_headers()
        if self.command != "HEAD":
            self._copy(file, first, end, self.rate if file.parent.name == "files" else 0)
        return status

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

    def _copy(self, file: Path, first: int, end: int, rate: int) -> None:
        size = min(CHUNK, max(1, rate // 20)) if rate else CHUNK
        with file.open("rb") as source:
            source.seek(first)
            while first < end:
                chunk = source.read(min(size, end - first))
                if first + len(chunk) >= end:
                    self.log.answered(self.number)
                self.wfile.write(chunk)
                self.sent += len(chunk)
                first += len(chunk)
                if rate:
                    time.sleep(len(chunk) / rate)
