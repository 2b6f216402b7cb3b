"""A loopback HTTP proxy that counts what comes back through it, by host."""

from __future__ import annotations

import select
import socket
import threading
from collections import Counter
from types import TracebackType
from urllib.parse import urlsplit

PIECE = 1 << 18
SECONDS = 60.0


class CountingProxy:
    """Tunnels (CONNECT) and plain requests with an absolute address; a context manager.

    ``counted`` are the bytes from each host to the client, TLS and headers included.
    """

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> CountingProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:  # closed: the end
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                head = _head(client)
                method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
                if method == "CONNECT":
                    host, _, port = target.rpartition(":")
                    first = b""
                else:
                    parts = urlsplit(target)
                    host, port = parts.hostname or "", str(parts.port or 80)
                    first = head.replace(target.encode(), _path(target).encode(), 1)
                with socket.create_connection((host.strip("[]"), int(port)), SECONDS) as server:
                    if first:
                        server.sendall(first)
                    else:
                        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    self._copy(client, server, host)
            except (OSError, ValueError):
                return  # the client sees that its connection ends

    def _copy(self, client: socket.socket, server: socket.socket, host: str) -> None:
        other = {client: server, server: client}
        while True:
            ready, _, _ = select.select([client, server], [], [], SECONDS)
            if not ready:
                return
            for one in ready:
                data = one.recv(PIECE)
                if not data:
                    return
                if one is server:
                    with self._lock:
                        self.counted[host] += len(data)
                other[one].sendall(data)


def _head(client: socket.socket) -> bytes:
    client.settimeout(SECONDS)
    head = b""
    while b"\r\n\r\n" not in head:
        data = client.recv(PIECE)
        if not data:
            raise OSError("the client went away")
        head += data
    return head


def _path(target: str) -> str:
    parts = urlsplit(target)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
