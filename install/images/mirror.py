"""A registry on loopback that has exactly one image, and shows its layers while they are still fetched.

An engine pulls from it and knows no credentials, which stay in this process. The repository's first part is
the secret, since engines send no header of ours: whoever does not know it sees an empty registry.
Source: the OCI distribution specification 1.1.
"""

from __future__ import annotations

import re
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from ...exit_codes import EnvcheckError
from ..registry import client as registry
from ..registry import reference
from ..registry.image import Blob, Image
from ..serving.handler import FileHandler, is_same
from ..serving.server import LoopbackServer
from ..store.errors import ComesAgain

if TYPE_CHECKING:
    from ..lockfile import LockedFile
    from ..store.transfer import Transfer

# Engines ask again for most of what is refused; not where it is denied (seen with podman 4.3, docker 20.10).
REFUSED = HTTPStatus.FORBIDDEN
_DENIED = "DENIED"
_OCTETS = "application/octet-stream"


class Files(Protocol):
    """Where the layers come from: a Fetcher."""

    def want(self, file: LockedFile, *, first: bool = False) -> Transfer: ...


class MirrorServer(LoopbackServer):
    """While its ``with`` lasts, an engine can pull the image from HOST/REPOSITORY.

    errors: what was in the way, as envcheck knows it; the engine only says that something was.
    again: a layer came with wrong bytes, and comes anew; an engine that had read of it has to pull again.
    """

    def __init__(self, image: Image, files: Files) -> None:
        self._files = files
        self._layers = {f"sha256:{file.sha256}": file for file in registry.layers(image)}
        self._path = reference.parse(image.reference).repository
        self._manifest = image.manifest
        self._manifest_data = image.manifest_text.encode()
        self._config = (image.config.digest, image.config_text.encode())
        self._given: list[Transfer] = []
        # What a repository's name may hold: no capital letters.
        super().__init__(_Handler, secrets.token_hex(20))

    @property
    def host(self) -> str:
        """ "127.0.0.1:PORT"."""
        return f"127.0.0.1:{self.server_port}"

    @property
    def repository(self) -> str:
        """ "SECRET/nvidia/tensorflow"."""
        return f"{self.secret}/{self._path}"

    def is_here(self, repository: str) -> bool:
        secret, _, path = repository.partition("/")
        return is_same(secret, self.secret) and path == self._path

    @property
    def again(self) -> bool:
        return any(isinstance(transfer.error, ComesAgain) for transfer in self._given)

    def failed(self, error: EnvcheckError) -> None:
        if not isinstance(error, ComesAgain):
            super().failed(error)

    def manifest(self, wanted: str) -> tuple[bytes, Blob] | None:
        """Its bytes, under its digest and under every tag: enroot knows no digests."""
        if wanted.startswith("sha256:") and wanted != self._manifest.digest:
            return None
        return self._manifest_data, self._manifest

    def config(self, digest: str) -> bytes | None:
        return self._config[1] if digest == self._config[0] else None

    def layer(self, digest: str) -> tuple[Transfer, int] | None:
        """A layer, begun before those that nobody waits for, and its size in bytes."""
        file = self._layers.get(digest)
        if file is None:
            return None
        transfer = self._files.want(file, first=True)
        if not transfer.complete:
            transfer.wait_beyond(transfer.available(), 0.0)  # raises what it failed by
        self._given.append(transfer)
        assert file.size is not None  # a manifest names it
        return transfer, file.size


class _Handler(FileHandler):
    """Answers GET and HEAD for /v2/, /v2/REPOSITORY/manifests/… and /v2/REPOSITORY/blobs/…"""

    def do_GET(self) -> None:
        server = cast("MirrorServer", self.server)
        server.count()
        self._ignore_body()
        path = self.path.partition("?")[0]
        if path in ("/v2", "/v2/"):
            self._answer(HTTPStatus.OK, b"{}", {"Content-Type": "application/json", **_VERSION})
            return
        found = re.fullmatch(r"/v2/(.+)/(manifests|blobs)/([^/]+)", path)
        if found is None or not server.is_here(found[1]):
            self._refuse(HTTPStatus.NOT_FOUND, "NAME_UNKNOWN", "There is no such repository.")
        elif found[2] == "manifests":
            self._manifest(server, found[3])
        else:
            self._blob(server, found[3])

    do_HEAD = do_GET

    def _manifest(self, server: MirrorServer, wanted: str) -> None:
        manifest = server.manifest(wanted)
        if manifest is None:
            self._refuse(HTTPStatus.NOT_FOUND, "MANIFEST_UNKNOWN", "There is no such manifest.")
            return
        data, blob = manifest
        named = {"Content-Type": blob.media_type, "Docker-Content-Digest": blob.digest}
        self._answer(HTTPStatus.OK, data, {**named, **_VERSION})

    def _blob(self, server: MirrorServer, digest: str) -> None:
        named = {"Content-Type": _OCTETS, "Docker-Content-Digest": digest, **_VERSION}
        config = server.config(digest)
        if config is not None:
            self._answer(HTTPStatus.OK, config, named)
            return
        try:
            layer = server.layer(digest)
            if layer is None:
                self._refuse(HTTPStatus.NOT_FOUND, "BLOB_UNKNOWN", "There is no such blob.")
            else:
                self._send_file(layer[0], layer[1], digest, named)
        except EnvcheckError as error:
            server.failed(error)
            self._refuse(REFUSED, _DENIED, str(error))

    def _refuse(self, status: HTTPStatus, code: str, message: str) -> None:
        body = msgspec.json.encode({"errors": [{"code": code, "message": message}]})
        self._answer(status, body, {"Content-Type": "application/json", **_VERSION})


_VERSION = {"Docker-Distribution-Api-Version": "registry/2.0"}
