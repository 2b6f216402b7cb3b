"""Snapshots of a container seen from both sides: a host with two H100s, and an image that is well on it."""

from __future__ import annotations

from typing import Any

from build import document, snapshot
from msgspec.structs import replace
from targets import ABSENT, gpu, interpreter, machine

from envcheck.facts.containers import CdiSpec, Containers, Engine
from envcheck.facts.gpu import CudaDriver, Gpu, NvidiaSmi, Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import DeviceNode, Kernel
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Environment

DRIVER = "550.54.15"
LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
COMPAT = "/usr/local/cuda/compat/lib.real/libcuda.so.1"
IMAGE = "image:nvcr.io/nvidia/tensorflow:23.01-tf2-py3"
RUNNING = "container:train"
GPUS = (gpu(0), gpu(1))
PODMAN = Engine(name="podman", path="/usr/bin/podman", version="4.3.1", server_version="4.3.1")
SPEC = CdiSpec(path="/etc/cdi/nvidia.yaml", kind="nvidia.com/gpu", version="0.5.0", devices=["all"])


def node(path: str, **changes: Any) -> DeviceNode:
    facts: dict[str, Any] = {"mode": "0666", "owner": "root", "group": "root", "usable": True}
    return DeviceNode(path=path, **(facts | changes))


def nodes(count: int = 2, **changes: Any) -> list[DeviceNode]:
    paths = ["/dev/nvidiactl", "/dev/nvidia-uvm", *(f"/dev/nvidia{n}" for n in range(count))]
    return [node(path, **changes) for path in paths]


def cuda(*gpus: Gpu, version: str = DRIVER, path: str = LIBCUDA, **changes: Any) -> CudaDriver:
    """libcuda of that version, with which CUDA starts and lists these GPUs."""
    whole: CudaDriver = machine(*gpus)["cuda"]
    facts: dict[str, Any] = {
        "library_path": path,
        "library_real_path": path.replace("libcuda.so.1", f"libcuda.so.{version}"),
        "init_name": "CUDA_SUCCESS",
    }
    return replace(whole, **(facts | changes))


def no_libcuda() -> CudaDriver:
    return CudaDriver(
        library_path=ABSENT, init_code=ABSENT, device_count=ABSENT, devices=ABSENT, load_error="no"
    )


def silent(code: int, path: str = LIBCUDA, version: str = DRIVER) -> CudaDriver:
    """libcuda is there, and cuInit says this."""
    return cuda(version=version, path=path, init_code=code, device_count=ABSENT, devices=ABSENT)


def nvml(*gpus: Gpu) -> Nvml:
    found: Nvml = machine(*gpus)["nvml"]
    return found


def no_nvml(code: int) -> Nvml:
    return Nvml(init_code=code, init_error="", gpu_count=ABSENT, gpus=ABSENT)


def host(**changes: Any) -> Host:
    facts: dict[str, Any] = {
        "container": "podman",
        "shm_total_mib": 8192,
        "memlock_kib": -1,
        "cgroup_pids_limit": ABSENT,
        "wsl": False,
    }
    return Host(**(facts | changes))


def both(
    location: str = IMAGE,
    variables: dict[str, str] | None = None,
    outside: dict[str, Any] | None = None,
    **inside: Any,
) -> Snapshot:
    """inside: probes in the place of the healthy ones; None leaves one out. outside: the host's."""
    within: dict[str, Any] = {
        "interpreter": interpreter(kind="interpreter"),
        "environment": Environment(variables=variables or {"NVIDIA_VISIBLE_DEVICES": "all"}),
        "host": host(),
        "kernel": Kernel(device_nodes=nodes()),
        "nvml": nvml(*GPUS),
        "nvidia_smi": NvidiaSmi(path=ABSENT, gpus=ABSENT),
        "cuda": cuda(*GPUS),
        **inside,
    }
    around: dict[str, Any] = {
        **machine(*GPUS, driver=DRIVER),
        "host": Host(container=ABSENT, wsl=False, rdma_devices=["mlx5_0"]),
        "kernel": Kernel(driver_version=DRIVER, device_nodes=nodes()),
        "cuda": cuda(*GPUS),
        "containers": Containers(engines=[PODMAN], cdi_specs=[SPEC]),
        **(outside or {}),
    }
    there = {name: probe for name, probe in within.items() if probe is not None}
    return snapshot(
        document(location, **there), **{k: v for k, v in around.items() if v is not None}
    )
