"""An image at a BadServer, which then misbehaves as a registry."""

from __future__ import annotations

from collections.abc import Sequence

from bad_server import BadServer
from image_registry import Pushed, digest_of, image

REPOSITORY = "team/image"


def put(
    server: BadServer, layers: Sequence[bytes], *, tag: str = "1", style: str = "oci"
) -> Pushed:
    """Under REPOSITORY:tag."""
    built = image(layers, style=style)
    for wanted in (tag, built.digest):
        server.file(manifest(wanted), built.body, content_type=built.media_type)
    for data in (*layers, built.config):
        server.file(blob(data), data)
    return built


def name(server: BadServer, tag: str = "1") -> str:
    return f"127.0.0.1:{server.port}/{REPOSITORY}:{tag}"


def manifest(wanted: str) -> str:
    return f"/v2/{REPOSITORY}/manifests/{wanted}"


def blob(data: bytes) -> str:
    return f"/v2/{REPOSITORY}/blobs/{digest_of(data)}"
