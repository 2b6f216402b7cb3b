"""One connection to the loopback index: HTTP/1.1, kept alive, read-only."""

from __future__ import annotations

import base64
import binascii
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, unquote, urlsplit

from packaging.utils import canonicalize_name

from ...exit_codes import EnvcheckError
from ..serving.handler import FileHandler, is_same, size_of
from . import page
from .address import HOST
from .simple import JSON_TYPE, ProjectFile
from .views import key

if TYPE_CHECKING:
    from .server import IndexServer

# Neither uv nor pip tries again after it, and uv, unlike after 403 or 404, does not go on without the
# project (seen with uv 0.13, pip 18.1 and pip 23.2).
VIEW_FAILED = HTTPStatus.FAILED_DEPENDENCY
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")  # PEP 503's, normalised
FOREVER = "public, max-age=31536000, immutable"


class Handler(FileHandler):
    """Answers GET and HEAD for /simple/PROJECT/, /files/KEY/NAME and /files/KEY/NAME.metadata."""

    def do_GET(self) -> None:
        server = cast("IndexServer", self.server)
        server.count()
        self._ignore_body()
        path = self._allowed(server)
        if path is None:
            self._answer(HTTPStatus.FORBIDDEN, b"This index is for one installer alone.\n")
            return
        try:
            self._route(server, path)
        except EnvcheckError as error:
            server.failed(error)
            self._answer(VIEW_FAILED, f"{error}\n".encode())

    do_HEAD = do_GET

    def do_CONNECT(self) -> None:
        cast("IndexServer", self.server).count()
        self.close_connection = True
        self._answer(HTTPStatus.FORBIDDEN, b"This is an index, and a way to nowhere else.\n")

    def _allowed(self, server: IndexServer) -> str | None:
        """The path without the secret; None for a client that does not know it."""
        if self.path.startswith("/"):
            secret, slash, path = self.path[1:].partition("/")
            return slash + path if is_same(secret, server.secret) else None
        try:
            parts = urlsplit(self.path)
        except ValueError:  # anybody on this machine may send anything
            return None
        scheme, _, credentials = self.headers.get("Proxy-Authorization", "").partition(" ")
        if scheme.lower() != "basic" or not is_same(
            _decoded(credentials), f"envcheck:{server.secret}"
        ):
            return None
        return parts.path if (parts.scheme, parts.netloc) == ("http", HOST) else None

    def _route(self, server: IndexServer, path: str) -> None:
        path = path.partition("?")[0]
        project = re.fullmatch(r"/simple/([^/]+)(/?)", path)
        file = re.fullmatch(r"/files/([^/]+)/([^/]+?)(\.metadata)?", path)
        name = canonicalize_name(unquote(project[1])) if project else ""
        if project and _NAME.fullmatch(name):
            self._project(server, name, slash=bool(project[2]))
        elif file and file[3]:
            self._metadata(server, file[1])
        elif file:
            self._file(server, file[1])
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"There is nothing here.\n")

    def _project(self, server: IndexServer, name: str, *, slash: bool) -> None:
        if not slash:  # the page's links are relative to its directory
            self._answer(HTTPStatus.MOVED_PERMANENTLY, b"", {"Location": f"{quote(name)}/"})
            return
        files = server.view.project(name)
        if files is None:
            self._answer(HTTPStatus.NOT_FOUND, b"There is no such project.\n")
            return
        accept = self.headers.get("Accept", "")
        if page.wants_json(accept):
            kind, body = JSON_TYPE, page.as_json(name, files, _link)
        else:
            kind, body = page.html_type(accept), page.as_html(name, files, _link)
        self._answer(
            HTTPStatus.OK,
            body,
            {"Content-Type": kind, "Cache-Control": "no-store", "Vary": "Accept"},
        )

    def _metadata(self, server: IndexServer, wanted: str) -> None:
        data = server.view.metadata(wanted)
        if data is None:
            self._answer(HTTPStatus.NOT_FOUND, b"There is no metadata of it.\n")
            return
        headers = {"Content-Type": "application/octet-stream", "Cache-Control": _lasting(wanted)}
        self._answer(HTTPStatus.OK, data, headers)

    def _file(self, server: IndexServer, wanted: str) -> None:
        transfer = server.view.file(wanted)
        if transfer is None:
            self._answer(HTTPStatus.NOT_FOUND, b"There is no such file.\n")
            return
        headers = {"Content-Type": "application/octet-stream", "Cache-Control": _lasting(wanted)}
        self._send_file(transfer, size_of(server, transfer), wanted, headers)


def _link(file: ProjectFile) -> str:
    return f"../../files/{key(file)}/{quote(file.filename)}"


def _lasting(wanted: str) -> str:
    """What is named by its sha256 never changes."""
    return FOREVER if re.fullmatch(r"[0-9a-f]{64}", wanted) else "no-store"


def _decoded(credentials: str) -> str:
    try:
        return base64.b64decode(credentials, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
