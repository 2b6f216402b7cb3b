"""An image as its registry describes it."""

from __future__ import annotations

import msgspec

from . import reference


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """Content identified by its digest: a manifest, a config, a layer."""

    digest: str  # "sha256:…"
    size: int  # bytes

    @property
    def sha256(self) -> str:
        return self.digest.partition(":")[2]


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """The lock of the container mode."""

    reference: str  # as requested, with its registry: "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    digest: str  # what the registry resolves the reference to: an index or a manifest
    manifest: Blob  # for this machine's platform; what is pulled
    config: Blob  # its digest is the image's id in podman and docker
    layers: list[Blob]
    architecture: str  # as images name it: "amd64"
    entrypoint: list[str] = []
    user: str = ""
    environment: dict[str, str] = {}

    @property
    def name(self) -> str:
        """Without tag and digest: "nvcr.io/nvidia/tensorflow"."""
        return reference.parse(self.reference).name

    @property
    def pinned(self) -> str:
        """What is pulled: "nvcr.io/nvidia/tensorflow@sha256:…"."""
        return f"{self.name}@{self.manifest.digest}"

    @property
    def download_bytes(self) -> int:
        """The size of the compressed layers; one that occurs twice counts once."""
        return sum({blob.digest: blob.size for blob in self.layers}.values())


class PullOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine needs for a pull beside its own settings. Its repr shows no password."""

    insecure: bool = False  # the user allowed plain http, or any certificate
    registry: str = ""
    user: str = ""  # a login that the engine does not find by itself; "": none
    password: str = ""

    def __repr__(self) -> str:
        return f"PullOptions({self.registry!r})"
