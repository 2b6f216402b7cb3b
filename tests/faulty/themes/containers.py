"""Containers, and the engines of a node."""

from __future__ import annotations

import json
from typing import Any

from world.machine import LIB, Machine

from ..changes import both, files, machine
from ..model import Collection
from .driver import without_library

FAULTS = Collection("containers and nodes")
add = FAULTS.add
INFO: dict[str, Any] = {
    "ServerVersion": "27.3.1",
    "CgroupDriver": "cgroupfs",
    "CgroupVersion": "2",
    "Runtimes": {"runc": {}, "nvidia": {}},
    "DefaultRuntime": "runc",
    "Driver": "overlay2",
    "DockerRootDir": "/var/lib/docker",
    "OperatingSystem": "Ubuntu 22.04.5 LTS",
    "SecurityOptions": ["name=seccomp,profile=builtin", "name=cgroupns"],
    "CDISpecDirs": [],
    "ServerErrors": None,
    "ClientInfo": {"Context": "default"},
}
TOOLKIT = "1.17.4"


def docker(
    m: Machine, toolkit: str | None = TOOLKIT, says: str | None = None, code: int = 0, **info: Any
) -> None:
    """Docker, with NVIDIA's toolkit as its packages set it up."""
    text = json.dumps({**INFO, **info}) if says is None else says
    out = "" if says is None else " >&2"
    m.write(
        "/usr/bin/docker",
        "#!/bin/sh\ncase \"$1\" in\n--version) echo 'Docker version 27.3.1, build ce12230';;\n"
        f"*) cat /.made/docker{out}; exit {code};;\nesac\n",
    )
    m.write("/.made/docker", text + "\n")
    m.cgroup2 = {**INFO, **info}["CgroupVersion"] == "2"
    m.write("/var/lib/docker/.keep", "")
    m.write("/sbin/ldconfig", "#!/bin/sh\n")
    m.write("/usr/bin/docker-init", "#!/bin/sh\n")
    m.services.append("/usr/bin/dockerd")
    if toolkit is not None:
        for name, words in (
            ("nvidia-ctk", f"NVIDIA Container Toolkit CLI version {toolkit}"),
            ("nvidia-container-cli", f"cli-version: {toolkit}"),
            ("nvidia-container-runtime-hook", f"version {toolkit}"),
            ("nvidia-container-runtime", f"NVIDIA Container Runtime version {toolkit}"),
        ):
            m.write(f"/usr/bin/{name}", f"#!/bin/sh\necho '{words}'\n")
        config(m, "")


def config(m: Machine, line: str) -> None:
    m.write(
        "/etc/nvidia-container-runtime/config.toml",
        f'[nvidia-container-cli]\n{line}\nldconfig = "@/sbin/ldconfig"\n\n[nvidia-container-runtime]\nmode = "auto"\n',
    )


def podman(m: Machine, version: str = "4.9.3") -> None:
    info = {
        "host": {
            "cgroupManager": "systemd",
            "cgroupVersion": "v2",
            "security": {"rootless": False, "selinuxEnabled": False},
            "ociRuntime": {"name": "crun"},
            "serviceIsRemote": False,
        },
        "store": {"graphDriverName": "overlay", "graphRoot": "/var/lib/containers/storage"},
        "version": {"Version": version},
    }
    m.write("/.made/podman", json.dumps(info))
    m.write("/var/lib/containers/storage/.keep", "")
    m.write(
        "/usr/bin/podman",
        f"#!/bin/sh\ncase \"$1\" in\n--version) echo 'podman version {version}';;\n*) cat /.made/podman;;\nesac\n",
    )
    m.write("/usr/libexec/podman/catatonit", "#!/bin/sh\n")
    m.write(
        "/usr/bin/nvidia-ctk", f"#!/bin/sh\necho 'NVIDIA Container Toolkit CLI version {TOOLKIT}'\n"
    )


def cdi(m: Machine, version: str = "0.5.0", last: str = "") -> None:
    """last: the last GPU's node, where it is another one."""
    nodes = [f"nvidia{gpu.minor}" for gpu in m.gpus]
    nodes = [*nodes[:-1], last or nodes[-1]]
    devices = "".join(
        f'  - name: "{n}"\n    containerEdits:\n      deviceNodes:\n        - path: /dev/{node}\n'
        for n, node in enumerate(nodes)
    )
    library = f"{LIB}/libcuda.so.{m.driver}"
    m.write(
        "/etc/cdi/nvidia.yaml",
        f"---\ncdiVersion: {version}\nkind: nvidia.com/gpu\ndevices:\n{devices}"
        "  - name: all\n    containerEdits:\n      deviceNodes:\n        - path: /dev/nvidia0\n"
        "containerEdits:\n  deviceNodes:\n    - path: /dev/nvidiactl\n    - path: /dev/nvidia-uvm\n"
        f"  mounts:\n    - hostPath: {library}\n      containerPath: {library}\n      options:\n        - ro\n",
    )


DENIED = "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"
add(
    "this user may not talk to docker",
    both(lambda m: docker(m, says=DENIED, code=1), machine(user=True)),
    ("CTR-001", r"docker|", r"permission|may not", r"usermod|group|sudo"),
    base="rtx4090",
)


add(
    "the toolkit's no-cgroups is set for docker as root",
    both(docker, lambda m: config(m, "no-cgroups = true")),
    ("CTR-005", r"", r"no-cgroups", r"no-cgroups"),
)
add(
    "systemd's cgroups without links in /dev/char",
    lambda m: docker(m, CgroupDriver="systemd"),
    ("CTR-003", r"", r"/dev/char|systemd|lose", r"create-dev-char-symlinks|nvidia-ctk|cgroupfs"),
    unseen="a made-up device node is a plain file, which has no number that a link could lead to",
)
add(
    "podman 3.4 knows nothing of CDI",
    both(lambda m: podman(m, "3.4.4"), cdi),
    ("CTR-006", r"podman|", r"3\.4\.4", r"podman|upgrade|4\.1"),
    base="rtx4090",
    also="CTR-002|CTR-007",
)
add(
    "podman without a CDI specification",
    podman,
    ("CTR-002", r"podman|", r"CDI", r"nvidia-ctk cdi generate"),
    base="a100-mig",
)


add(
    "the CDI specification names a GPU that is not there",
    both(podman, lambda m: cdi(m, last="nvidia9")),
    ("CTR-004", r"nvidia\.yaml|", r"/dev/nvidia9", r"nvidia-ctk cdi generate"),
)
add(
    "a CDI specification newer than the engine reads",
    both(podman, lambda m: cdi(m, version="1.0.0")),
    ("CTR-007", r"nvidia\.yaml|podman|", r"1\.0\.0", r"spec-version|nvidia-ctk cdi|podman"),
)


def _void(m: Machine) -> None:
    for name in ("libcuda", "libnvidia-ml"):
        without_library(m, name)
    for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"):
        m.write(path, None)
    m.write("/usr/bin/nvidia-smi", None)
    m.environment["NVIDIA_VISIBLE_DEVICES"] = "void"


add(
    "a container without --gpus",
    _void,
    (
        "ENV-002|KRN-006|DRV-00[14]|BND-0\\d\\d",
        r"",
        r"container|GPU|librar|nvidiactl",
        r"--gpus|--device",
    ),
    base="container",
    also="KRN-006|DRV-00[1345]|ENV-002",
)


add(
    "NVIDIA_VISIBLE_DEVICES=none in a container",
    both(
        lambda m: m.environment.update(NVIDIA_VISIBLE_DEVICES="none"),
        files({"/dev/nvidia0": None}),
        machine(gpus=[], cuda_init="100 -", smi_out="No devices were found\n", smi_code=6),
    ),
    (
        "ENV-002|KRN-006|DRV-00[17]|PCI-00\\d",
        r"",
        r"NVIDIA_VISIBLE_DEVICES|container|device",
        r"--gpus|NVIDIA_VISIBLE_DEVICES",
    ),
    base="container",
    also="KRN-006|DRV-00[147]|ENV-002",
)
