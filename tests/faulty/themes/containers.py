"""Containers, and the engines of a node."""

from __future__ import annotations

import json
from typing import Any

from world.machine import LIB, Library, Link, Machine

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


def podman(m: Machine, version: str = "4.9.3", rootless: bool = False) -> None:
    info = {
        "host": {
            "cgroupManager": "systemd",
            "cgroupVersion": "v2",
            "security": {"rootless": rootless, "selinuxEnabled": False},
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


def cdi(
    m: Machine,
    driver: str | None = None,
    version: str = "0.5.0",
    count: int | None = None,
    path: str = "/etc/cdi",
) -> None:
    devices = "".join(
        f'  - name: "{gpu.index}"\n    containerEdits:\n      deviceNodes:\n        - path: /dev/nvidia{gpu.minor}\n'
        for gpu in m.gpus[:count]
    )
    library = f"{LIB}/libcuda.so.{driver or m.driver}"
    m.write(
        f"{path}/nvidia.yaml",
        f"---\ncdiVersion: {version}\nkind: nvidia.com/gpu\ndevices:\n{devices}"
        "  - name: all\n    containerEdits:\n      deviceNodes:\n        - path: /dev/nvidia0\n"
        "containerEdits:\n  deviceNodes:\n    - path: /dev/nvidiactl\n    - path: /dev/nvidia-uvm\n"
        f"  mounts:\n    - hostPath: {library}\n      containerPath: {library}\n      options:\n        - ro\n",
    )


# ---- on a node
add(
    "docker without the toolkit",
    "rtx4090",
    lambda m: docker(m, toolkit=None, Runtimes={"runc": {}}),
    ("CTR-002", r"docker|", r"toolkit|runtime", r"install.*nvidia-container-toolkit"),
)
add(
    "docker's server does not run",
    "h100",
    lambda m: docker(
        m,
        says="Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
        "running?",
        code=1,
    ),
    ("CTR-001", r"docker|", r"daemon|server|answer", r"systemctl.*start.*docker|docker"),
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
    "rtx4090",
    _no_permission,
    ("CTR-001", r"docker|", r"permission|may not", r"usermod|group|sudo"),
)


def _cgroups_off(m: Machine) -> None:
    docker(m)
    config(m, "no-cgroups = true")


add(
    "the toolkit's no-cgroups is set for docker as root",
    "h100",
    _cgroups_off,
    ("CTR-005", r"", r"no-cgroups", r"no-cgroups"),
)


def _systemd_driver(m: Machine) -> None:
    docker(m, CgroupDriver="systemd")


add(
    "systemd's cgroups without links in /dev/char",
    "h100",
    _systemd_driver,
    (
        "CTR-003",
        r"",
        r"/dev/char|systemd|lose",
        r"create-dev-char-symlinks|nvidia-ctk|cgroupfs|cdi",
    ),
    unseen="a made-up device node is a plain file, which has no number that a link could lead to",
)
add(
    "podman 3.4 knows nothing of CDI",
    "rtx4090",
    lambda m: (podman(m, "3.4.4"), cdi(m)),
    ("CTR-006", r"podman|", r"3\.4\.4", r"podman|upgrade|4\.1"),
    also="CTR-002|CTR-007",
)
add(
    "podman without a CDI specification",
    "a100-mig",
    lambda m: podman(m),
    ("CTR-002", r"podman|", r"CDI", r"nvidia-ctk cdi generate"),
)
add(
    "the CDI specification is of the driver before",
    "h100",
    lambda m: (podman(m), cdi(m, driver="570.86.10")),
    ("CTR-004", r"nvidia\.yaml|", r"570\.86\.10", r"nvidia-ctk cdi generate"),
)


def _gone_node(m: Machine) -> None:
    podman(m)
    cdi(m)
    m.files["/etc/cdi/nvidia.yaml"] = str(m.files["/etc/cdi/nvidia.yaml"]).replace(
        "/dev/nvidia7", "/dev/nvidia9"
    )


add(
    "the CDI specification names a GPU that is not there",
    "h100",
    _gone_node,
    ("CTR-004", r"nvidia\.yaml|", r"/dev/nvidia9", r"nvidia-ctk cdi generate"),
)
add(
    "a CDI specification newer than the engine reads",
    "h100",
    lambda m: (podman(m, "4.9.3"), cdi(m, version="1.0.0")),
    ("CTR-007", r"nvidia\.yaml|podman|", r"1\.0\.0", r"spec-version|nvidia-ctk cdi|podman"),
)
add(
    "a toolkit too old for the second cgroups",
    "h100",
    lambda m: docker(m, toolkit="1.7.0"),
    ("CTR-0\\d\\d", r"", r"1\.7\.0", r"install|upgrade|1\.8"),
)


# ---- in a container
def _lost_by_cgroup(m: Machine) -> None:
    m.nvml_first = ["0 nvmlInit - 999 -"]
    m.cuda_init = "999 -"
    m.smi_out, m.smi_code = "Failed to initialize NVML: Unknown Error\n", 255


add(
    "the container lost its GPU",
    "container",
    _lost_by_cgroup,
    (
        "CTR-0\\d\\d|DRV-001|ENV-002",
        r"",
        r"Unknown Error|999|lost|cgroup|device",
        r"restart|container|--gpus|docker|cgroup",
    ),
    also="DRV-004",
)


def _void(m: Machine) -> None:
    for name in ("libcuda", "libnvidia-ml"):
        m.write(f"{LIB}/{name}.so.1", None)
        m.write(f"{LIB}/{name}.so.{m.driver}", None)
    m.write(f"{LIB}/libcuda.so", None)
    for path in (
        "/dev/nvidia0",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools",
        "/usr/bin/nvidia-smi",
    ):
        m.write(path, None)
    m.environment["NVIDIA_VISIBLE_DEVICES"] = "void"


add(
    "a container without --gpus",
    "container",
    _void,
    (
        "ENV-002|KRN-006|DRV-00[14]|BND-0\\d\\d",
        r"",
        r"container|GPU|librar|nvidiactl",
        r"--gpus|--device",
    ),
    also="KRN-006|DRV-00[1345]|ENV-002",
)


def _utility(m: Machine) -> None:
    m.write(f"{LIB}/libcuda.so.1", None)
    m.write(f"{LIB}/libcuda.so.{m.driver}", None)
    m.write(f"{LIB}/libcuda.so", None)
    m.environment["NVIDIA_DRIVER_CAPABILITIES"] = "utility"


add(
    "the container has the driver's utilities alone",
    "container",
    _utility,
    (
        "ENV-009|DRV-00[45]",
        r"",
        r"compute|libcuda",
        r"NVIDIA_DRIVER_CAPABILITIES=(compute|all)|compute",
    ),
    also="DRV-00[45]",
)


def _baked_in(m: Machine) -> None:
    """The image brought a driver of its own, which lies before the engine's."""
    folder = "/usr/local/nvidia/lib64"
    for name, kind in (("libcuda", "cuda"), ("libnvidia-ml", "nvml")):
        m.write(f"{folder}/{name}.so.535.104.05", Library(kind))
        m.write(f"{folder}/{name}.so.1", Link(f"{name}.so.535.104.05"))
    m.environment["LD_LIBRARY_PATH"] = folder
    m.nvml_first = ["0 nvmlInit - 18 -"]
    m.cuda_init = "803 -"
    m.nvml_version = "535.104.05"
    m.smi_out, m.smi_code = (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.104\n",
        18,
    )


add(
    "an image brought a driver of its own",
    "container",
    _baked_in,
    (
        "DRV-00[25]|CTR-0\\d\\d|BND-01[0-2]",
        r"",
        r"535\.104\.05",
        r"LD_LIBRARY_PATH|image|remove|rm ",
    ),
    also="DRV-00[1245]|KRN-005",
)


def _no_uvm(m: Machine) -> None:
    m.write("/dev/nvidia-uvm", None)
    m.write("/dev/nvidia-uvm-tools", None)
    m.cuda_init = "999 -"


add(
    "a container without /dev/nvidia-uvm",
    "container",
    _no_uvm,
    ("KRN-007|ENV-002|CTR-0\\d\\d", r"", r"nvidia-uvm", r"--gpus|--device|nvidia-modprobe|cdi"),
    also="DRV-004",
)


def _memory_limit(m: Machine) -> None:
    m.environment["NVIDIA_VISIBLE_DEVICES"] = "none"
    m.write("/dev/nvidia0", None)
    m.gpus = []
    m.cuda_init = "100 -"
    m.smi_out, m.smi_code = "No devices were found\n", 6


add(
    "NVIDIA_VISIBLE_DEVICES=none in a container",
    "container",
    _memory_limit,
    (
        "ENV-002|KRN-006|DRV-00[17]|PCI-00\\d",
        r"",
        r"NVIDIA_VISIBLE_DEVICES|container|device",
        r"--gpus|NVIDIA_VISIBLE_DEVICES",
    ),
    also="KRN-006|DRV-00[147]|ENV-002",
)
