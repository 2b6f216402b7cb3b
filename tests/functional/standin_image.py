"""An image at a BadServer, which then misbehaves as a registry."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Sequence
from pathlib import Path

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


def put_archive(server: BadServer, archive: Path, *, tag: str = "1") -> dict[str, int]:
    """An image of an OCI archive under REPOSITORY:tag: its layers' paths and sizes in bytes."""
    server.file("/v2/", b"{}", content_type="application/json")  # engines ask it first
    with tarfile.open(archive) as tar:

        def read(digest: str) -> bytes:
            member = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert member is not None
            return member.read()

        index = tar.extractfile("index.json")
        assert index is not None
        described = json.loads(index.read())["manifests"][0]
        body = read(described["digest"])
        report = json.loads(body)
        for wanted in (tag, described["digest"]):
            server.file(manifest(wanted), body, content_type=described["mediaType"])
        for one in (report["config"], *report["layers"]):
            data = read(one["digest"])
            server.file(blob(data), data)
    return {f"/v2/{REPOSITORY}/blobs/{one['digest']}": one["size"] for one in report["layers"]}
