"""Containers, and the engines of a node."""

from __future__ import annotations

import json
from typing import Any

from world.machine import LIB, Machine

from ..model import Collection

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


def cdi(m: Machine, version: str = "0.5.0") -> None:
    devices = "".join(
        f'  - name: "{gpu.index}"\n    containerEdits:\n      deviceNodes:\n        - path: /dev/nvidia{gpu.minor}\n'
        for gpu in m.gpus
    )
    library = f"{LIB}/libcuda.so.{m.driver}"
    m.write(
        "/etc/cdi/nvidia.yaml",
        f"---\ncdiVersion: {version}\nkind: nvidia.com/gpu\ndevices:\n{devices}"
        "  - name: all\n    containerEdits:\n      deviceNodes:\n        - path: /dev/nvidia0\n"
        "containerEdits:\n  deviceNodes:\n    - path: /dev/nvidiactl\n    - path: /dev/nvidia-uvm\n"
        f"  mounts:\n    - hostPath: {library}\n      containerPath: {library}\n      options:\n        - ro\n",
    )


def _no_permission(m: Machine) -> None:
    docker(
        m,
        says="permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        code=1,
    )
    m.user = True


add(
    "this user may not talk to docker",
    _no_permission,
    ("CTR-001", r"docker|", r"permission|may not", r"usermod|group|sudo"),
    base="rtx4090",
)


def _cgroups_off(m: Machine) -> None:
    docker(m)
    config(m, "no-cgroups = true")


add(
    "the toolkit's no-cgroups is set for docker as root",
    _cgroups_off,
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
    lambda m: (podman(m, "3.4.4"), cdi(m)),
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


def _gone_node(m: Machine) -> None:
    podman(m)
    cdi(m)
    text = str(m.files["/etc/cdi/nvidia.yaml"])
    m.write("/etc/cdi/nvidia.yaml", text.replace("/dev/nvidia7", "/dev/nvidia9"))


add(
    "the CDI specification names a GPU that is not there",
    _gone_node,
    ("CTR-004", r"nvidia\.yaml|", r"/dev/nvidia9", r"nvidia-ctk cdi generate"),
)
add(
    "a CDI specification newer than the engine reads",
    lambda m: (podman(m, "4.9.3"), cdi(m, version="1.0.0")),
    ("CTR-007", r"nvidia\.yaml|podman|", r"1\.0\.0", r"spec-version|nvidia-ctk cdi|podman"),
)


def _void(m: Machine) -> None:
    for name in ("libcuda", "libnvidia-ml"):
        m.write(f"{LIB}/{name}.so.1", None)
        m.write(f"{LIB}/{name}.so.{m.driver}", None)
    m.write(f"{LIB}/libcuda.so", None)
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"):
        m.write(f"/dev/{name}", None)
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


def _none_visible(m: Machine) -> None:
    m.environment["NVIDIA_VISIBLE_DEVICES"] = "none"
    m.write("/dev/nvidia0", None)
    m.gpus = []
    m.cuda_init = "100 -"
    m.smi_out, m.smi_code = "No devices were found\n", 6


add(
    "NVIDIA_VISIBLE_DEVICES=none in a container",
    _none_visible,
    (
        "ENV-002|KRN-006|DRV-00[17]|PCI-00\\d",
        r"",
        r"NVIDIA_VISIBLE_DEVICES|container|device",
        r"--gpus|NVIDIA_VISIBLE_DEVICES",
    ),
    base="container",
    also="KRN-006|DRV-00[147]|ENV-002",
)
