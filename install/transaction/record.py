"""What is known of a version: what was asked for, what it holds, and the doctor's verdict on it."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Literal

import msgspec

from ... import __version__
from .. import durable
from ..request import Request
from .layout import Version, VersionId

SCHEMA = 1


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The doctor's summary."""

    verdict: str  # "Healthy: 60 checks passed, 12 skipped."
    failing: list[str] = []  # codes that fail, and failed before
    unproven: list[str] = []  # codes that it must pass and that could not run without a GPU


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """What only the building of a version tells. Sizes are allocated bytes."""

    python: str = ""  # "3.11.7"
    interpreter: str = ""  # its path; "" in a container
    installer: str = ""  # "uv 0.13.9"
    engine: str = ""  # "podman"; these five of a container alone
    image: str = ""  # "nvcr.io/nvidia/tensorflow:23.03-tf1-py3": as it was asked for
    image_digest: str = ""  # of its manifest: "sha256:…"
    image_bytes: int = 0  # of its layers in the engine
    wiring: str = ""  # how GPUs get into it: "by CDI (/etc/cdi/nvidia.yaml)"
    notes: list[str] = []  # shown once, at the end of the installation


class Record(Built, frozen=True, kw_only=True):
    """A verified version's ``record.json``. Times are UTC."""

    schema: int
    version: VersionId
    stack: str
    release: str
    title: str
    request: Request
    inputs: str  # ``inputs(request)`` when it was installed
    mode: Literal["wheel", "container"] = "wheel"
    lock: str  # its digest: of pylock.toml, or of the image's manifest
    versions: dict[str, str]  # of its packages
    building: dict[str, str] = {}  # of those that sdists were built with, and that are not in it
    envcheck: str
    created_at: str
    verified_at: str
    bytes_total: int
    bytes_shared: int  # of it, linked from uv's cache
    health: Health


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation has come to."""

    directory: str  # the root
    version: VersionId
    prefix: str  # ROOT/current: what to activate
    already: bool  # it was there, and nothing was done
    before: str  # the version that was current; "" where none was
    record: Record
    notes: list[str] = []
    drifted: bool = False  # packages of the lock have been changed or removed since
    provided: dict[str, str] = {}  # what was given in a package's place: name → how


def inputs(request: Request) -> str:
    """A digest of what a request's meaning rests on: envcheck's version, and the files that it names.

    Raises OSError for a file that no longer exists.
    """
    digest = hashlib.sha256(__version__.encode())
    named = [request.stack] if os.sep in request.stack or request.stack.endswith(".toml") else []
    for path in map(Path, [*named, *([request.lock] if request.lock else [])]):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    if request.offline:
        status = Path(request.offline).stat()
        digest.update(f"{request.offline} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()


def public(request: Request) -> Request:
    """The request without credentials in the URLs of indexes."""
    indexes = [re.sub(r"://[^/?#]*@", "://", index) for index in request.indexes]
    return msgspec.structs.replace(request, indexes=indexes)


def read(version: Version) -> Record | None:
    """A version's record; None: it was never verified."""
    try:
        return durable.load(version.record, Record)
    except (OSError, ValueError):
        return None


def write(version: Version, record: Record) -> None:
    """Raises OSError."""
    durable.dump(version.record, record)
