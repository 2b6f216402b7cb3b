"""What each engine is told, so that it takes an image from envcheck's loopback registry: pure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from ...exit_codes import Cannot
from ..engine import EngineImage, EngineName
from ..registry.image import Image


class Mirror(Protocol):
    """The loopback registry that serves one image (images/mirror.py)."""

    @property
    def host(self) -> str:
        """ "127.0.0.1:PORT" """

    @property
    def repository(self) -> str:
        """ "SECRET/nvidia/tensorflow" """


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an engine."""

    arguments: list[str]
    variables: dict[str, str] = {}  # beside the user's own
    files: dict[str, str] = {}  # to be written before, by their names in the folder


def pull(held: EngineImage, image: Image, mirror: Mirror, folder: Path) -> Order:
    """Have the engine take ``image`` from ``mirror``; what it writes on the way lies in ``folder``."""
    return _PULLS[held.engine](held, image, mirror, folder)


def load(held: EngineImage, archive: Path, folder: Path) -> Order:
    """Have the engine take an image from an archive. Raises Cannot where it reads none."""
    if held.engine in ("podman", "docker"):
        arguments = ["load", "--quiet", "--input", str(archive)]
        return Order(arguments=arguments, variables={"TMPDIR": str(folder)})
    if held.engine == "apptainer":
        arguments = ["build", "--force", held.image_id, f"oci-archive://{archive}"]
        return Order(arguments=arguments, variables=_apptainer_folders(folder))
    raise Cannot(
        f"{held.engine} reads no image archives.",
        "name another engine (--engine podman), or install without --offline",
    )


def _podman(_held: EngineImage, image: Image, mirror: Mirror, folder: Path) -> Order:
    """The image keeps its name, and nothing but the mirror can answer for it."""
    registries = (
        "unqualified-search-registries = []\n"
        "[[registry]]\n"
        f'prefix = "{image.name}"\n'
        f'location = "{mirror.host}/{mirror.repository}"\n'
        "insecure = true\n"
    )
    logins = folder / "auth.json"  # none: the user's must not be shown to the mirror
    return Order(
        arguments=["pull", "--quiet", "--authfile", str(logins), image.pinned],
        variables={
            "CONTAINERS_REGISTRIES_CONF": str(folder / "registries.conf"),
            "TMPDIR": str(folder),
        },
        files={"registries.conf": registries, "auth.json": "{}\n"},
    )


def at_mirror(image: Image, mirror: Mirror) -> str:
    """The image's name at the mirror, by digest."""
    return f"{mirror.host}/{mirror.repository}@{image.manifest.digest}"


def _docker(_held: EngineImage, image: Image, mirror: Mirror, _folder: Path) -> Order:
    """docker takes plain http from 127.0.0.0/8; the name is dropped afterwards."""
    return Order(arguments=["pull", "--quiet", at_mirror(image, mirror)])


def _apptainer(held: EngineImage, image: Image, mirror: Mirror, folder: Path) -> Order:
    return Order(
        arguments=["pull", "--force", held.image_id, f"docker://{at_mirror(image, mirror)}"],
        variables={
            "APPTAINER_NOHTTPS": "1",
            "SINGULARITY_NOHTTPS": "1",
            **_apptainer_folders(folder),
        },
    )


def _apptainer_folders(folder: Path) -> dict[str, str]:
    return {
        f"{prefix}_{name}": str(folder)
        for prefix in ("APPTAINER", "SINGULARITY")
        for name in ("TMPDIR", "CACHEDIR")
    }


def _enroot(held: EngineImage, image: Image, mirror: Mirror, folder: Path) -> Order:
    """enroot names images by tag alone; the mirror answers every tag with its one image."""
    _, _, last = image.reference.partition("@")[0].rpartition("/")
    tag = last.partition(":")[2] or "latest"
    source = f"docker://{mirror.host}#{mirror.repository}:{tag}"
    return Order(
        arguments=["import", "--output", held.image_id, source],
        variables={
            "ENROOT_ALLOW_HTTP": "y",
            "ENROOT_CACHE_PATH": str(folder / "cache"),
            "ENROOT_TEMP_PATH": str(folder),
            "ENROOT_CONFIG_PATH": str(folder / "config"),  # without the user's .credentials
        },
    )


_PULLS: dict[EngineName, Callable[[EngineImage, Image, Mirror, Path], Order]] = {
    "podman": _podman,
    "docker": _docker,
    "apptainer": _apptainer,
    "enroot": _enroot,
}
