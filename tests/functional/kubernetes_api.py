"""A stand-in for Kubernetes' API server: nodes over HTTP, with a token, a ClusterRole's rules and conflicts.

It merges as the API server does for what envcheck sends: conditions by their type, taints as a whole. It
refuses a resourceVersion that is not the node's (409). Nothing else of Kubernetes is in it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "token-of-envcheck"
PAGE = 2  # nodes of an answer, however many were asked for


class StandInApi:
    """rules: of a ClusterRole. between: called before a change is carried out, as by somebody else. down: it
    answers 503."""

    def __init__(self, rules: list[dict[str, Any]], *names: str) -> None:
        self.rules, self.down, self.asked = rules, False, list[str]()
        self.nodes = {name: _node(name) for name in names}
        self.between: Any = lambda: None

    def condition(self, name: str, kind: str) -> dict[str, str]:
        return next(one for one in self.nodes[name]["status"]["conditions"] if one["type"] == kind)

    def taints(self, name: str) -> list[tuple[str, str]]:
        return [(one["key"], one["value"]) for one in self.nodes[name]["spec"].get("taints", [])]

    def touch(self, name: str) -> None:
        """Somebody else changes the node."""
        metadata = self.nodes[name]["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)

    def may(self, verb: str, resource: str) -> bool:
        return any(verb in one["verbs"] and resource in one["resources"] for one in self.rules)

    def answer(
        self, method: str, target: str, token: str, kind: str, body: Any
    ) -> tuple[int, dict[str, Any]]:
        parts = urlsplit(target)
        _, _api, _v1, resource, *rest = parts.path.split("/")
        name, subresource = [*rest, "", ""][:2]
        resource = f"{resource}/{subresource}" if subresource else resource
        verb = "patch" if method == "PATCH" else "get" if name else "list"
        self.asked.append(f"{verb} {resource}")
        if self.down:
            return 503, _status(503, "ServiceUnavailable")
        if token != f"Bearer {TOKEN}":
            return 401, _status(401, "Unauthorized")
        if not self.may(verb, resource):
            return 403, _status(403, "Forbidden")
        if verb == "list":
            first = int(parse_qs(parts.query).get("continue", ["0"])[0])
            names = sorted(self.nodes)
            further = {"continue": str(first + PAGE)} if len(names) > first + PAGE else {}
            items = [self.nodes[one] for one in names[first : first + PAGE]]
            return 200, {"kind": "NodeList", "metadata": further, "items": items}
        if name not in self.nodes:
            return 404, _status(404, "NotFound")
        if verb == "patch":
            assert kind == "application/strategic-merge-patch+json", kind
            self.between()
            version = body.get("metadata", {}).get("resourceVersion")
            if version not in (None, self.nodes[name]["metadata"]["resourceVersion"]):
                return 409, _status(409, "Conflict")
            self._merge(name, subresource, body)
        return 200, self.nodes[name]

    def _merge(self, name: str, subresource: str, body: dict[str, Any]) -> None:
        node = self.nodes[name]
        self.touch(name)
        if subresource:  # a change of the status alone
            conditions = {one["type"]: one for one in node["status"]["conditions"]}
            conditions |= {one["type"]: one for one in body["status"]["conditions"]}
            node["status"]["conditions"] = list(conditions.values())
        else:
            node["spec"] |= body["spec"]


@contextmanager
def serve(api: StandInApi, folder: Path) -> Iterator[str]:
    """Serves it on loopback; the path of a kubeconfig."""

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length) or b"null")
            token, kind = (self.headers.get(one, "") for one in ("Authorization", "Content-Type"))
            code, content = api.answer(self.command, self.path, token, kind, body)
            data = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PATCH = _do

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [
            {"name": "it", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        ],
        "users": [{"name": "it", "user": {"token": TOKEN}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    try:
        yield str(file)
    finally:
        server.shutdown()
        server.server_close()


def _node(name: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-01T00:00:00Z"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "resourceVersion": "1", "labels": {}},
        "spec": {},
        "status": {"capacity": {"cpu": "8", "nvidia.com/gpu": "0"}, "conditions": [ready]},
    }


def _status(code: int, reason: str) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
