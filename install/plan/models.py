"""What an installation would do, step by step, before it does any of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..catalogue.containers import OWN

StepName = Literal[
    "python", "resolve", "fetch", "create", "install", "configure", "wire", "verify", "swap"
]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    name: StepName
    sentence: str


class PlannedPackage(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str
    file: str
    size: int | None  # bytes; None: the index does not say
    sha256: str
    index: str
    in_store: bool  # it is in uv's cache or downloaded, and not fetched again
    building: bool = False  # needed to build an sdist, and not in the environment


class DiskNeed(msgspec.Struct, frozen=True, kw_only=True):
    """What one file system is asked to hold."""

    path: str
    what: list[str]  # "the environment", "fetched files", "uv's unpacked wheels"
    needed_mib: int
    free_mib: int | None
    estimated: bool  # not every size is known

    @property
    def missing_mib(self) -> int:
        return max(0, self.needed_mib - self.free_mib) if self.free_mib is not None else 0


class Plan(msgspec.Struct, frozen=True, kw_only=True, tag_field="mode"):
    """Everything that will happen, in both modes."""

    stack: str
    release: str
    title: str
    reasons: list[str]  # why this stack and release, and not a newer one
    notes: list[str]
    directory: str  # "…/envs/tensorflow": holds the versions and the link "current"
    version: str  # the new version's directory in it
    steps: list[Step]
    disk_needs: list[DiskNeed] = msgspec.field(name="rooms")
    download_bytes: int
    in_store_bytes: int

    @property
    def called(self) -> str:
        """For people: "ngc-tf1 23.03"; an image of their own by its name."""
        return f"{self.stack} {self.release}".rstrip()


class WheelPlan(Plan, frozen=True, kw_only=True, tag="wheel"):
    """A virtual environment."""

    python: str  # "3.11.7"
    interpreter: str  # its path; "" where it has to be got first
    installer: str  # "uv 0.13.9"
    packages: list[PlannedPackage]
    provided: dict[str, str]
    sizes_unknown: int  # packages whose size the index does not say


class ImagePlan(Plan, frozen=True, kw_only=True, tag="container"):
    """An image in an engine's storage."""

    engine: str  # "podman 4.3.1"
    reference: str  # as asked: "nvcr.io/nvidia/tensorflow:25.02-tf2-py3"
    digest: str  # what the registry says that the reference is: "sha256:…"
    manifest: str  # the digest of the image for this machine, which is pulled
    layers: int
    compressed_bytes: int  # of all layers, fetched or not
    unpacked_bytes: int  # what they take in the engine's storage; estimated: no manifest says it
    wiring: str  # how the GPUs get in: "by CDI (/etc/cdi/nvidia.yaml)"; "" where none is wired
    user: str  # of the image's configuration; "" is root
    contents: dict[str, str]  # what the catalogue knows: {"TensorFlow": "2.12.0"}; "" is not known

    @property
    def pinned(self) -> str:
        """What `install --image` takes for exactly this image: its tag, and the digest that was found."""
        return f"{self.reference.partition('@')[0]}@{self.manifest}"

    @property
    def called(self) -> str:
        return self.reference if self.stack == OWN else super().called


AnyPlan = WheelPlan | ImagePlan
