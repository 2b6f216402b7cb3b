"""An image's files in a bundle: an OCI layout, with the manifest.json that `docker load` looks for.

podman, docker and skopeo read it. Sources: the OCI image specification 1.1
(image-layout.md); moby's image/spec/v1.2, as `docker save` 25 writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ..bundle.writing import Content
from ..registry.image import Blob, Image
from . import image_lock

INDEX = "index.json"
DOCKER_MANIFEST = "manifest.json"
WHEELS = "pylock.toml"  # in a bundle of the wheel mode
REF_NAME = "org.opencontainers.image.ref.name"
FULL_NAME = "io.containerd.image.name"

_INDEX_TYPE = "application/vnd.oci.image.index.v1+json"

Stored = Callable[[Blob], Path]  # where a layer lies


def name_of(digest: str) -> str:
    """Where a blob lies in an OCI layout."""
    return f"blobs/{digest.replace(':', '/')}"


def contents(image: Image, stored: Stored) -> dict[str, Content]:
    """The files of the archive, by name: layers where they lie, and what names them."""
    files = {
        "oci-layout": Content.of(b'{"imageLayoutVersion":"1.0.0"}'),
        INDEX: _json(_index(image)),
        DOCKER_MANIFEST: _docker_manifest(image),
        image_lock.NAME: Content.of(image_lock.text(image).encode()),
        name_of(image.manifest.digest): Content.of(image.manifest_text.encode()),
        name_of(image.config.digest): Content.of(image.config_text.encode()),
    }
    layers = {blob.digest: blob for blob in image.layers}.values()
    return files | {
        name_of(blob.digest): Content(source=stored(blob), sha256=blob.sha256, size=blob.size)
        for blob in layers
    }


def _docker_manifest(image: Image) -> Content:
    """What `docker load` before version 25 reads."""
    entry = {
        "Config": name_of(image.config.digest),
        "RepoTags": [image.tagged] if image.tagged else [],
        "Layers": [name_of(blob.digest) for blob in image.layers],
    }
    return _json([entry])


def _index(image: Image) -> dict[str, Any]:
    manifest: dict[str, Any] = image.manifest.descriptor
    manifest["platform"] = {"architecture": image.architecture, "os": "linux"}
    if image.tagged:
        manifest["annotations"] = {FULL_NAME: image.tagged, REF_NAME: image.tagged}
    return {"schemaVersion": 2, "mediaType": _INDEX_TYPE, "manifests": [manifest]}


def _json(value: Any) -> Content:
    return Content.of(msgspec.json.encode(value))
