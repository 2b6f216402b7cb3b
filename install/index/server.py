"""Serves a view as a package index on the loopback interface, to one installer that knows the secret.

uv reaches it as a proxy, under the unchanging ``address.INDEX_URL``: uv's cache then knows the files
again in the next run, whatever the port. pip reaches it by ``url``, whose first part is the secret.
"""

from __future__ import annotations

import secrets
import socket
import sys
import threading
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any

from ...exit_codes import EnvcheckError
from .handler import Handler
from .views import View

POLL = 0.05  # seconds until a stop is noticed


class IndexServer(ThreadingHTTPServer):
    """While its ``with`` lasts, the view is served on a free port of 127.0.0.1, a thread a connection."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # uv opens fifty connections at once

    def __init__(self, view: View) -> None:
        self.view = view
        self.secret = secrets.token_urlsafe(24)
        self.errors: list[EnvcheckError] = []  # what the view raised, in order, each once
        self.requests = 0
        self.stopping = False
        self._crashes: list[BaseException] = []
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def proxy(self) -> str:
        """For HTTP_PROXY; it holds the secret, so it belongs into the environment of a process."""
        return f"http://envcheck:{self.secret}@127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        """The index's URL for pip; it holds the secret."""
        return f"http://127.0.0.1:{self.server_port}/{self.secret}/simple/"

    def __enter__(self) -> IndexServer:
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
