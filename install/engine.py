"""Container engines: the types that the parts of the container mode share."""

from __future__ import annotations

from typing import Literal

import msgspec

EngineName = Literal["podman", "docker"]
ENGINES: tuple[EngineName, ...] = ("podman", "docker")  # in order of preference


class EngineImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image in an engine's storage, as a version's ``.envcheck/held.json`` records it.

    It is written before the pull begins, so that a killed installation can be cleaned up.
    """

    engine: EngineName
    program: str  # the engine's path
    image_id: str  # the config's digest, "sha256:…"
    tag: str  # this version's own name: "localhost/envcheck/ngc-tf1-5e0c3a91:23.03-tf1-1f0c9a2b"
    reference: str  # "nvcr.io/nvidia/tensorflow@sha256:…"
    before: bool  # the engine had it before envcheck: it is never removed, only untagged


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """How GPUs get into an engine's containers."""

    kind: Literal["cdi", "gpus", "runtime", "hook", "none"]
    arguments: list[str]  # of the engine's `run`: ["--device", "nvidia.com/gpu=all"]
    environment: dict[str, str] = {}  # of the container: NVIDIA_VISIBLE_DEVICES
    sentence: str = ""  # "by CDI (/etc/cdi/nvidia.yaml)"


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """How an installed image is started: ``.envcheck/start.json``, all that `envcheck run` needs."""

    engine: EngineName
    program: str  # the engine's path
    image: str  # the image's id
    reference: str  # for people: "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    wiring: Wiring
    gpus: int  # device nodes that must be there (in WSL2 /dev/dxg is all of them); 0: no check
    shm_mib: int = 0  # of /dev/shm; 0: the engine's default
    ulimits: dict[str, str] = {}  # that the engine may set here: "memlock": "-1"
    init: bool = False  # the engine has an init program, which passes signals on
    keep_id: bool = False  # rootless podman: the caller's uid is the same inside
    root_is_caller: bool = False  # rootless docker: root inside is the caller outside
    pids_unlimited: bool = False  # podman's default limit is 2048 processes and threads
    devices: list[str] = []  # looked for at each start: "/dev/infiniband"
    entrypoint: str | None = None  # instead of the image's; "": none
    unlabelled: bool = False  # SELinux is enforcing: bind mounts need label=disable
    environment: dict[str, str] = {}  # of the stack
    remarks: list[str] = []  # what could not be set here, shown at installation
