"""A registry's token server on loopback: bearer tokens for who knows the password.

with TokenServer(account=("user", "word")) as tokens:
    bad_server.gate = tokens.gate          # a registry that asks for its tokens
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bad_server import Seen


class TokenServer:
    """account: None gives everybody a token."""

    def __init__(self, account: tuple[str, str] | None = None) -> None:
        self.account = account
        self.body: bytes | None = None  # in the place of a token
        self.asked: list[dict[str, str]] = []  # the query, and "authorization"
        self.issued: set[str] = set()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.tokens = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/token"

    def __enter__(self) -> TokenServer:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def gate(self, seen: Seen) -> str:
        """For a BadServer: "" for who brings a token that is good now, else the challenge."""
        if seen.headers.get("authorization", "").removeprefix("Bearer ") in self.issued:
            return ""
        return f'Bearer realm="{self.url}",service="tests",scope="repository:x:pull,push"'


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        tokens: TokenServer = self.server.tokens
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        given = self.headers.get("Authorization", "")
        tokens.asked.append({**query, "authorization": given})
        account = tokens.account
        wanted = base64.b64encode(":".join(account).encode()).decode() if account else ""
        status, body = 200, tokens.body
        if account and given != f"Basic {wanted}":
            status, body = 401, b"{}"
        elif body is None:
            token = secrets.token_hex(16)
            tokens.issued.add(token)
            body = json.dumps({"token": token}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
