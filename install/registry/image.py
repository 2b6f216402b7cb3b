"""An image as its registry describes it: what a reference is today, to the byte."""

from __future__ import annotations

import msgspec


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that their digest names: a manifest, a config, a layer."""

    digest: str  # "sha256:…"
    size: int  # bytes
    media_type: str

    @property
    def sha256(self) -> str:
        return self.digest.partition(":")[2]

    @property
    def descriptor(self) -> dict[str, str | int]:
        """As manifests and indexes name it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size}


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """The lock of the container mode. Two equal digests are the same bytes everywhere."""

    reference: str  # as asked, whole: "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    digest: str  # what the registry says that the reference is: of an index, or of the manifest
    manifest: Blob  # of this machine's platform; what is pulled
    config: Blob  # its digest is the image's id in podman and docker
    layers: list[Blob]
    architecture: str  # as images name it: "amd64"
    manifest_text: str  # the exact bytes
    config_text: str
    created_at: str = ""
    entrypoint: list[str] = []
    command: list[str] = []
    user: str = ""
    environment: dict[str, str] = {}
    labels: dict[str, str] = {}

    @property
    def platform(self) -> str:
        """ "linux/amd64"."""
        return f"linux/{self.architecture}"

    @property
    def name(self) -> str:
        """Without tag and digest: "nvcr.io/nvidia/tensorflow"."""
        bare = self.reference.partition("@")[0]
        head, slash, last = bare.rpartition("/")
        return head + slash + last.partition(":")[0]

    @property
    def tagged(self) -> str:
        """ "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"; "" for an image that was asked for by digest alone."""
        bare = self.reference.partition("@")[0]
        return bare if bare != self.name else ""

    @property
    def pinned(self) -> str:
        """ "nvcr.io/nvidia/tensorflow@sha256:…": what is pulled, and nothing else can be."""
        return f"{self.name}@{self.manifest.digest}"

    @property
    def download_bytes(self) -> int:
        """What the layers weigh on the way, compressed, each once."""
        return sum({blob.digest: blob.size for blob in self.layers}.values())


class PullOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine needs for a registry beside its own settings. Its repr shows no password."""

    insecure: bool = (
        False  # plain http, or a certificate that nobody vouches for: the user allowed it
    )
    registry: str = ""
    user: str = ""  # a login that the engine does not find by itself; "": none
    password: str = ""

    def __repr__(self) -> str:
        return f"PullOptions({self.registry!r})"
