"""A server on the loopback interface: where that is down, the way out is said before uv is started."""

from __future__ import annotations

import errno
import os
import socket
from http.server import BaseHTTPRequestHandler

import pytest

from envcheck.exit_codes import CouldNotLook
from envcheck.install.serving.server import LoopbackServer


def test_a_loopback_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Down(socket.socket):
        def connect(self, address: object) -> None:
            raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))

    server = LoopbackServer(BaseHTTPRequestHandler, "secret")
    monkeypatch.setattr(socket, "socket", Down)
    with pytest.raises(CouldNotLook, match="the loopback interface is down") as caught, server:
        pass
    server.server_close()
    assert caught.value.hint.startswith("as root: ip link set lo up; then")
    assert "--offline installs from a bundle" in caught.value.hint


def test_a_loopback_that_is_up_is_not_asked_anything() -> None:
    with LoopbackServer(BaseHTTPRequestHandler, "secret") as server:
        assert (server.requests, server.errors) == (0, [])
