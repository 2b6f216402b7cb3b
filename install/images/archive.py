"""Writes an image as an archive that podman, docker, apptainer and skopeo read: an OCI image layout, with the
manifest.json that `docker load` looks for.

Sources: the OCI image specification 1.1 (image-layout.md); moby's image/spec/v1.2, as
`docker save` 25 writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ..bundle import writing
from ..bundle.writing import Content
from ..registry import reference
from ..registry.image import Blob, Image
from . import docker_archive, image_lock
from .archive_index import FULL_NAME, INDEX, REF_NAME, name_of
from .archive_reading import LOCK

_INDEX_TYPE = "application/vnd.oci.image.index.v1+json"

Stored = Callable[[Blob], Path]  # where a layer lies


def write(target: Path, image: Image, stored: Stored) -> None:
    """Write the image alone as a .tar: the same bytes for the same image; it appears when it is whole.

    Raises UsageError where it exists or cannot be written, Cannot where there is no room for it, CouldNotLook
    for a layer that is not what its digest says.
    """
    writing.put(target, contents(image, stored), top="", option="")


def contents(image: Image, stored: Stored) -> dict[str, Content]:
    """The files of the archive, by name: layers where they lie, and what names them."""
    files = {
        "oci-layout": Content.of(b'{"imageLayoutVersion":"1.0.0"}'),
        INDEX: _json(_index(image)),
        docker_archive.MANIFEST: _json(_for_docker(image)),
        LOCK: Content.of(image_lock.text(image).encode()),
        name_of(image.manifest.digest): Content.of(image.manifest_text.encode()),
        name_of(image.config.digest): Content.of(image.config_text.encode()),
    }
    layers = {blob.digest: blob for blob in image.layers}.values()
    return files | {
        name_of(blob.digest): Content(source=stored(blob), sha256=blob.sha256, size=blob.size)
        for blob in layers
    }


def _index(image: Image) -> dict[str, Any]:
    tagged = _tagged(image)
    manifest: dict[str, Any] = docker_archive.descriptor(image.manifest)
    manifest["platform"] = {"architecture": image.architecture, "os": "linux"}
    if tagged:
        manifest["annotations"] = {FULL_NAME: tagged, REF_NAME: tagged}
    return {"schemaVersion": 2, "mediaType": _INDEX_TYPE, "manifests": [manifest]}


def _for_docker(image: Image) -> list[dict[str, Any]]:
    tagged = _tagged(image)
    return [
        {
            "Config": name_of(image.config.digest),
            "RepoTags": [tagged] if tagged else [],
            "Layers": [name_of(blob.digest) for blob in image.layers],
        }
    ]


def _tagged(image: Image) -> str:
    """ "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"; "" for an image that was asked for by digest alone."""
    asked = reference.parse(image.reference)
    return f"{asked.name}:{asked.tag}" if asked.tag else ""


def _json(value: Any) -> Content:
    return Content.of(msgspec.json.encode(value))
