"""A registry's token server on loopback: bearer tokens by scope, for a while, for who knows the password.

with TokenServer(account=("user", "word")) as tokens:
    bad_server.gate = tokens.gate          # a registry that asks for its tokens
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bad_server import Seen


class TokenServer:
    """account: None gives everybody a token. lasts: seconds, of a token."""

    def __init__(self, account: tuple[str, str] | None = None, *, lasts: float = 300) -> None:
        self.account = account
        self.lasts = lasts
        self.status = 200  # of its answers
        self.body: bytes | None = None  # in the place of a token
        self.asked: list[dict[str, str]] = []  # the query, and "authorization"
        self.issued: dict[str, float] = {}  # token: until when it is good
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.tokens = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/token"

    def __enter__(self) -> TokenServer:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()

    def gate(self, seen: Seen) -> str:
        """For a BadServer: "" for who brings a token that is good now, else the challenge."""
        token = seen.headers.get("authorization", "").removeprefix("Bearer ")
        if self.issued.get(token, 0.0) > time.monotonic():
            return ""
        return f'Bearer realm="{self.url}",service="tests",scope="repository:x:pull,push"'

    def expire(self) -> None:
        """No token that was given is good any more, whatever was said of it."""
        self.issued.clear()

    def token(self, *scopes: str) -> str:
        """One that is good for scopes like "repository:team/small:pull"."""
        found = secrets.token_hex(16)
        self.issued[found] = time.monotonic() + self.lasts
        return found


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
        status, body = tokens.status, tokens.body
        if account and given != f"Basic {wanted}":
            status, body = 401, b"{}"
        elif body is None:
            scopes = [query["scope"]] if "scope" in query else []
            answer = {"token": tokens.token(*scopes), "expires_in": tokens.lasts}
            body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
