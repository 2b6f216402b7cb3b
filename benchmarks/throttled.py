"""A TCP relay that lets so many bytes a second through: a slower network in front of a loopback server."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType

CHUNK = 256 * 1024  # bytes


class Throttled:
    """Relays connections to ``target``; what comes back from it is slowed down, all connections together.

    target: "127.0.0.1:PORT". rate: bytes a second.
    """

    def __init__(self, target: str, rate: float) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        self._rate = rate
        self._lock = threading.Lock()
        self._due = 0.0  # when the bytes that were let through so far are paid for
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Throttled:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # so that accept() comes back
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            for source, sink, slow in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._relay, args=(source, sink, slow), daemon=True).start()

    def _relay(self, source: socket.socket, sink: socket.socket, slow: bool) -> None:
        """By splice: the bytes never come into this process, whose time is not to be measured."""
        reading, writing = os.pipe()
        try:
            while count := os.splice(source.fileno(), writing, CHUNK):
                if slow:
                    self._pay(count)
                while count:
                    count -= os.splice(reading, sink.fileno(), count)
        except OSError:  # one of the two has hung up
            pass
        finally:
            os.close(reading)
            os.close(writing)
            with suppress(OSError):
                sink.shutdown(socket.SHUT_WR)

    def _pay(self, count: int) -> None:
        with self._lock:
            self._due = max(self._due, time.monotonic()) + count / self._rate
            wait = self._due - time.monotonic()
        time.sleep(max(0.0, wait))
