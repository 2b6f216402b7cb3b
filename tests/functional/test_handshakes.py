"""Connections come about side by side, and a slow one holds up no other."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import certificates
import pytest
from bad_server import BadServer

from envcheck.install.network.errors import HttpError
from envcheck.install.network.session import Session


def test_a_server_that_does_not_answer_a_handshake_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = certificates.make(tmp_path / "tls")
    monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        BadServer(tls=(made.certificate, made.key)) as server,
        Session() as session,
    ):
        server.file("/page", b"here")
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/page"
        waiting = threading.Thread(target=_ask, args=(session, url), daemon=True)
        waiting.start()
        connection, _ = silent.accept()
        assert connection.recv(1) == b"\x16"  # the handshake has begun
        answers: list[bytes] = []
        asking = threading.Thread(
            target=lambda: answers.append(session.get(server.url + "/page").content), daemon=True
        )
        asking.start()
        asking.join(10)
        assert answers == [b"here"] and waiting.is_alive()
        connection.close()
        waiting.join()
        asking.join()


def _ask(session: Session, url: str) -> None:
    with pytest.raises(HttpError):
        session.get(url, attempts=1)
