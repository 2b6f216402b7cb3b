"""A registry's token server on loopback: bearer tokens by scope, for a while, for who knows the password.

with TokenServer(account=("user", "word")) as tokens:
    bad_server.gate = tokens.gate          # a registry that asks for its tokens
    serve_registry(folder, auth=tokens.auth(folder))  # docker-registry believes them
"""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from bad_server import Seen


class TokenServer:
    """account: None gives everybody a token. lasts: seconds, of a token."""

    def __init__(
        self, account: tuple[str, str] | None = None, *, lasts: float = 300, key: Path | None = None
    ) -> None:
        self.account = account
        self.lasts = lasts
        self.status = 200  # of its answers
        self.body: bytes | None = None  # in the place of a token
        self.asked: list[dict[str, str]] = []  # the query, and "authorization"
        self.issued: dict[str, float] = {}  # token: until when it is good
        self._key = key
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

    def auth(self, folder: Path) -> str:
        """What docker-registry has to be told, with a new key; skips the test without openssl."""
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.skip("there is no openssl program on this machine")
        folder.mkdir(parents=True, exist_ok=True)
        self._key = folder / "token.key"
        subprocess.run(
            [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "token.key",
             "-out", "token.pem", "-days", "2", "-subj", "/CN=envcheck token tests"],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
        bundle = folder / "token.pem"
        parts = f"realm: {self.url}, service: tests, issuer: tests, rootcertbundle: '{bundle}'"
        return f"token: {{{parts}}}"

    def token(self, *scopes: str) -> str:
        """One that is good for scopes like "repository:team/small:pull"."""
        found = self._signed(list(scopes)) if self._key else secrets.token_hex(16)
        self.issued[found] = time.monotonic() + self.lasts
        return found

    def _signed(self, scopes: list[str]) -> str:
        assert self._key is not None
        certificate = self._key.with_suffix(".pem").read_text().split("-----")[2]
        head = {"typ": "JWT", "alg": "RS256", "x5c": ["".join(certificate.split())]}
        now = int(time.time())
        access = []
        for scope in scopes:
            kind, name, actions = scope.split(":")
            access.append({"type": kind, "name": name, "actions": actions.split(",")})
        said = {"iss": "tests", "sub": "", "aud": "tests", "exp": now + 300, "nbf": now - 5,
                "iat": now, "jti": secrets.token_hex(8), "access": access}  # fmt: skip
        text = b".".join(_encoded(json.dumps(part).encode()) for part in (head, said))
        argv = ["openssl", "dgst", "-sha256", "-sign", str(self._key)]
        signature = subprocess.run(argv, input=text, check=True, capture_output=True).stdout
        return (text + b"." + _encoded(signature)).decode()


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


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
