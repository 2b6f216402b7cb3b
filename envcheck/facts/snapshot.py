"""The Snapshot: everything that envcheck knows about a machine, typed, versioned and validated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from .. import json_text
from .acceleration import Acceleration
from .base import Facts, Probe
from .bench import Bench
from .containers import Containers
from .gpu import CudaDriver, NvidiaSmi, Nvml
from .host import Host
from .kernel import Kernel
from .micro_kernels import MicroKernels
from .network import Network
from .pci import Pci
from .soak import Soak
from .target import (
    Environment,
    Framework,
    InstalledLock,
    Loader,
    Packages,
    PackagingConfig,
    TargetInterpreter,
)

SCHEMA = 1
_Name = Annotated[str, msgspec.Meta(pattern="^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
Extensions = Annotated[dict[_Name, Probe[dict[str, Any]]], msgspec.Meta(max_length=64)]
EXTENSION_LIMIT = 1 << 20  # bytes of one foreign probe's facts


class Collector(Facts, frozen=True, kw_only=True):
    version: str
    python: str


class Document(Facts, frozen=True, kw_only=True):
    """One place's facts: a machine, or a target (an environment, an image, a running container).

    A probe that was not asked for is null; one that was and failed says so in its outcome.
    """

    origin: Literal["live", "nvidia-smi"]
    location: str  # "machine", "path:DIR", "image:REF", "container:ID"
    collected_at: str  # UTC, "2026-11-20T18:24:52Z"
    collector: Collector
    # machine; of a container what it sees of its machine: host, kernel, nvml, nvidia_smi, cuda, network
    host: Probe[Host] | None = None
    pci: Probe[Pci] | None = None
    kernel: Probe[Kernel] | None = None
    nvml: Probe[Nvml] | None = None
    nvidia_smi: Probe[NvidiaSmi] | None = None
    cuda: Probe[CudaDriver] | None = None
    containers: Probe[Containers] | None = None
    network: Probe[Network] | None = None
    # target; of a machine without one its environment, which is envcheck's own
    interpreter: Probe[TargetInterpreter] | None = None
    environment: Probe[Environment] | None = None
    packages: Probe[Packages] | None = None
    packaging_config: Probe[PackagingConfig] | None = None
    lock: Probe[InstalledLock] | None = None
    loader: Probe[Loader] | None = None
    tensorflow: Probe[Framework] | None = None
    torch: Probe[Framework] | None = None
    jax: Probe[Framework] | None = None
    # machine: `envcheck soak`
    soak: Probe[Soak] | None = None
    # both: L0 in the machine's document (where it ran in a container, too), L1 and L2 in the target's
    micro_kernels: Probe[MicroKernels] | None = None
    # both: memory and links in the machine's document, all other systems in the target's
    acceleration: Probe[Acceleration] | None = None
    # target: `envcheck bench`
    bench: Probe[Bench] | None = None
    # other packages' probes, by their names
    extensions: Extensions = {}


# The probes of a machine and those of a target; what a container sees of its machine is in its own document.
MACHINE_SECTIONS = frozenset(
    ("host", "pci", "kernel", "nvml", "nvidia_smi", "cuda", "containers", "network")
)
TARGET_SECTIONS = frozenset(
    (
        "interpreter",
        "environment",
        "packages",
        "packaging_config",
        "lock",
        "loader",
        "tensorflow",
        "torch",
        "jax",
    )
)


class Snapshot(Facts, frozen=True, kw_only=True, omit_defaults=False):
    schema: int
    redacted: bool
    machine: Document
    target: Document | None = None
    simulated: str = ""  # what a made-up Snapshot shows; of a real machine's it is empty


LIMIT = 64 * 1024 * 1024  # bytes; a Snapshot of a large machine has well under one megabyte


class _Header(msgspec.Struct):
    schema: int | None = None
    machine: msgspec.Raw = msgspec.Raw()


class SnapshotError(ValueError):
    """The text is not a Snapshot: one sentence that names the place."""


def load(data: bytes) -> Snapshot:
    """The Snapshot in this JSON text; raises SnapshotError with the place of the first thing wrong.

    Fields that this envcheck does not know are ignored: ``unknown_fields`` names them.
    """
    if len(data) > LIMIT:
        raise SnapshotError(f"larger than {LIMIT // 1048576} MiB: this is not a Snapshot")
    if not data.strip():
        raise SnapshotError("it is empty")
    try:
        found: Snapshot = json_text.read(data, Snapshot)
    except json_text.NotReadable as error:
        _refuse_others(data)
        raise SnapshotError(str(error)) from None
    check(found)
    return found


def check(found: Snapshot) -> None:
    """Raises SnapshotError for what fits the types, and is none for this envcheck."""
    _refuse_newer(found.schema)
    _refuse_large_extensions(found)


def _refuse_others(data: bytes) -> None:
    """Raises SnapshotError where the text is JSON, and no Snapshot, or one of a newer schema."""
    try:
        header = json_text.read(data, _Header)
    except json_text.NotReadable:
        return
    if header.schema is None or not header.machine:
        raise SnapshotError(
            'it is JSON, and not a Snapshot: "schema" and "machine" are not both there'
        )
    _refuse_newer(header.schema)


def unknown_fields(data: bytes, found: Snapshot) -> list[str]:
    """Where the text of a Snapshot says what ``load`` ignored: ["machine.nvml.facts.fans"].

    Raises SnapshotError where that cannot be read: the text is not UTF-8, or a number is too long.
    """
    try:
        whole = json_text.read(data)
    except json_text.NotReadable as error:
        raise SnapshotError(str(error)) from None
    return [place.removeprefix(".") for place in _unknown(whole, found, "")]


def _unknown(data: Any, known: Any, place: str) -> Iterator[str]:
    if isinstance(data, dict) and isinstance(known, msgspec.Struct):
        for name, value in data.items():
            if name == "extensions":
                continue  # other packages say there what they like
            if name in known.__struct_fields__:
                yield from _unknown(value, getattr(known, name), f"{place}.{name}")
            else:
                yield f"{place}.{name}"
    elif isinstance(data, dict) and isinstance(known, dict):
        for name, value in data.items():
            yield from _unknown(value, known[name], f"{place}.{name}")
    elif isinstance(data, list) and isinstance(known, list):
        for number, (value, item) in enumerate(zip(data, known, strict=True)):
            yield from _unknown(value, item, f"{place}[{number}]")


def _refuse_large_extensions(found: Snapshot) -> None:
    for document in (found.machine, found.target):
        for name, probe in document.extensions.items() if document is not None else ():
            if len(msgspec.json.encode(probe.facts)) > EXTENSION_LIMIT:
                raise SnapshotError(
                    f"the facts of the extension {name} are larger than {EXTENSION_LIMIT} bytes"
                )


def _refuse_newer(schema: int) -> None:
    if schema > SCHEMA:
        raise SnapshotError(
            f"it is a Snapshot of schema {schema}, and this envcheck reads schema {SCHEMA}:"
            " upgrade envcheck"
        )


def dump(snapshot: Snapshot) -> bytes:
    """The Snapshot as indented JSON, ending in a newline."""
    return json_text.render(snapshot).encode()
