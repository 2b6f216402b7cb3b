"""A server on the loopback interface for one client that knows the secret, for as long as its run lasts."""

from __future__ import annotations

import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...exit_codes import CouldNotLook, EnvcheckError

if TYPE_CHECKING:
    from typing_extensions import Self

POLL = 0.05  # seconds until a stop is noticed
MOST = 256  # connections at once; uv opens fifty, and anybody on this machine can open them


class LoopbackServer(ThreadingHTTPServer):
    """While its ``with`` lasts, it answers on a free port of 127.0.0.1, a thread a connection."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler], secret: str) -> None:
        self.secret = secret
        self.errors: list[EnvcheckError] = []  # what was in the way, in order, each once
        self.requests = 0
        self.stopping = False
        self._crashes: list[BaseException] = []
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), handler)

    def __enter__(self) -> Self:
        """Raises CouldNotLook where nobody could reach it."""
        _check_loopback(self.server_port)
        threading.Thread(target=self.serve_forever, args=(POLL,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Cut every connection; a bug in one of the threads is raised here instead of being lost."""
        self.stopping = True
        self.shutdown()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            _cut(connection)
        self.server_close()
        if error is None and self._crashes:
            raise self._crashes[0]

    def count(self) -> None:
        with self._lock:
            self.requests += 1

    def failed(self, error: EnvcheckError) -> None:
        with self._lock:
            if error not in self.errors:
                self.errors.append(error)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self._lock:
            self._open.add(connection)
        return connection, address

    def verify_request(self, request: Any, client_address: Any) -> bool:
        with self._lock:
            return len(self._open) <= MOST

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        # A client that goes away, or the end of the run.
        if error is not None and not isinstance(error, (ConnectionError, TimeoutError)):
            with self._lock:
                if not self.stopping:
                    self._crashes.append(error)


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has ended by itself


def _check_loopback(port: int) -> None:
    """Sends nothing: that of UDP only looks for the way there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("127.0.0.1", port))
        except OSError as error:
            raise CouldNotLook(
                "the loopback interface is down, and envcheck hands packages to uv through it"
                f" (127.0.0.1: {error.strerror})",
                "as root: ip link set lo up; then, without a network, --offline installs from a bundle",
            ) from None
