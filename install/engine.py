"""What the container mode knows of an engine: the types that its parts share."""

from __future__ import annotations

from typing import Literal

import msgspec

EngineName = Literal["podman", "docker", "apptainer", "enroot"]
ENGINES: tuple[EngineName, ...] = ("podman", "docker", "apptainer", "enroot")


class EngineImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image in an engine's storage, as a version's ``.envcheck/held.json`` names it.

    Written before the pull begins, so that whoever comes after a kill knows what may be there.
    """

    engine: EngineName
    program: str  # the engine's path
    image_id: str  # the config's digest, "sha256:…"; for apptainer and enroot the file's path
    tag: str  # "localhost/envcheck/ngc-tf1:23.03-tf1-1f0c9a2b": envcheck's own name of it; "" for files
    reference: str  # where it is from: "nvcr.io/nvidia/tensorflow@sha256:…"
    before: (
        bool  # the engine had the image before envcheck came: it is never removed, only untagged
    )
    name: str = (
        ""  # what the engine shall know it by, too: "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    )


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """How GPUs get into a container of one engine."""

    kind: Literal["cdi", "gpus", "runtime", "hook", "nv", "enroot", "none"]
    arguments: list[str]  # for the engine's `run`: ["--device", "nvidia.com/gpu=all"]
    environment: dict[str, str] = {}  # that the container must have for it: NVIDIA_VISIBLE_DEVICES
    sentence: str = ""  # "by CDI (/etc/cdi/nvidia.yaml)"
    chosen: list[str] = []  # UUIDs of the GPUs and MIG instances that were chosen; empty: all


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """How an installed image is started, apart from the command: ``.envcheck/start.json``.

    All that `envcheck run` needs, so that it asks no engine and costs next to nothing.
    """

    engine: EngineName
    program: str  # the engine's path
    image: str  # what the engine is told: the image's id, or the path of a .sif or .sqsh
    reference: str  # for people: "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    wiring: Wiring
    gpus: (
        int  # that must arrive: device nodes (in WSL2 /dev/dxg counts as all); 0: none is asked for
    )
    chosen: Wiring | None = None  # of the GPUs that were chosen at installation; None: of all
    chosen_gpus: int = 0  # that must arrive then
    shm_mib: int = 0  # of /dev/shm; 0: the engine's own
    ulimits: dict[str, str] = {}  # that the engine may set here: "memlock": "-1"
    init: bool = False  # the engine has an init program to put in front: signals reach the command
    keep_id: bool = False  # rootless podman: the caller's uid is the same inside
    root_is_caller: bool = False  # rootless docker: root inside is the caller outside
    pids_unlimited: bool = (
        False  # podman limits a container to 2048 processes and threads, unless told
    )
    devices: list[str] = []  # of this machine, looked for at each start: "/dev/infiniband"
    shell: bool = True  # the image has sh, in which it is checked that the GPUs arrive
    entrypoint: str | None = None  # in place of the image's own; "": none; None: its own
    unlabelled: bool = False  # SELinux enforces: bind mounts need label=disable
    environment: dict[str, str] = {}  # of the stack
    remarks: list[str] = []  # what could not be set here, and what follows: shown at installation
