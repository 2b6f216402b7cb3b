"""What the user asked for, and how it is to be carried out, once the command line is read."""

from __future__ import annotations

from typing import Literal

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to install. Two equal ones on an unchanged machine want the same environment."""

    stack: str = ""  # a stack's name or a file; "": envcheck chooses
    release: str = ""  # "": the newest that fits
    path: str = ""  # absolute; "": the environment of the stack's name under places.environments()
    python: str = ""  # a version ("3.8") or an interpreter's path
    indexes: list[str] = []  # NAME=URL, or a URL for the public index; they replace the catalogue's
    offline: str = ""  # a bundle
    lock: str = ""  # a pylock.toml to install as it stands
    allow_no_gpu: bool = False
    allow_insecure: list[str] = []  # indexes that may be plain http or unverified, by host name
    mode: Literal["wheel", "container"] = "wheel"
    # Of the container mode alone:
    # "": the one whose newest release that fits is the newest.
    flavour: Literal["", "tf1", "tf2", "torch", "jax"] = ""
    engine: Literal["", "podman", "docker"] = ""  # "": what works here
    image: str = ""  # an image of one's own, in place of NVIDIA's
    held: bool = False  # the engine has the image: its registry is not asked


class InstallOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How an installation is carried out, as far as it does not change what is installed."""

    until: Literal["plan", "installed"] = "installed"  # where it stops
    upgrade: bool = False
    fresh: bool = False  # a new version, as locked, although one is there
    wait: float | None = None  # seconds for another installation at the same place
    deadline: float | None = None  # seconds for each probe of the verification; None: each its own
