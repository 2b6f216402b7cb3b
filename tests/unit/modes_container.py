"""Containers that do not get their GPUs, and machines whose containers will not."""

from __future__ import annotations

import h100
from modes_machine import forbidden
from modes_parts import NO_GPU_LOG, no_cuda, no_libcuda, no_smi
from msgspec.structs import replace
from targets import good_target
from whole import ABSENT, blind, containers, docker, in_container, kernel, nodes, seeing, whole

from envcheck.facts.gpu import NvidiaSmi
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Environment


def selinux() -> Snapshot:
    confined = in_container(container="podman", selinux="enforcing")
    return whole(
        host=confined,
        kernel=kernel(device_nodes=nodes(usable=False), services=[]),
        containers=None,
        **forbidden(),
    )


def lost_in_container() -> Snapshot:
    """Inside, after systemd wrote the device rules anew: the nodes are there, and opening one fails."""
    return whole(
        good_target(
            tensorflow=blind(NO_GPU_LOG.format("CUDA_ERROR_UNKNOWN", "unknown error")),
            environment=Environment(
                variables={
                    "NVIDIA_VISIBLE_DEVICES": "all",
                    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
                }
            ),
        ),
        host=in_container(),
        kernel=kernel(device_nodes=nodes(char_link=False), services=[]),
        containers=None,
        nvml=h100.no_driver(999, "Unknown Error"),
        nvidia_smi=no_smi(255, "Failed to initialize NVML: Unknown Error"),
        cuda=no_cuda(999, "CUDA_ERROR_UNKNOWN"),
    )


def about_to_lose() -> Snapshot:
    """The host of such a container, before it happens."""
    return whole(kernel=kernel(device_nodes=nodes(char_link=False)))


def no_runtime() -> Snapshot:
    nothing = dict.fromkeys(
        (
            "toolkit_path",
            "toolkit_version",
            "cli_path",
            "cli_version",
            "hook_path",
            "toolkit_config",
        ),
        ABSENT,
    )
    bare = docker(runtimes=["io.containerd.runc.v2", "runc"])
    return whole(
        containers=containers(bare, **nothing, toolkit_mode=ABSENT, toolkit_no_cgroups=ABSENT)
    )


def small_container() -> Snapshot:
    return whole(
        host=in_container(shm_total_mib=64, memlock_kib=64),
        kernel=kernel(services=[]),
        containers=None,
    )


def started_without(tensorflow_log: str, variables: dict[str, str], **changes: object) -> Snapshot:
    """A container that the engine did not give all that it needs."""
    return whole(
        good_target(tensorflow=blind(tensorflow_log), environment=Environment(variables=variables)),
        host=in_container(),
        containers=None,
        **changes,
    )


def without_gpus() -> Snapshot:
    nothing = dict.fromkeys(("path", "exit_code", "gpus", "gpu_count", "driver_version"), ABSENT)
    return started_without(
        "Could not find cuda drivers on your machine, GPU will not be used.",
        {"NVIDIA_VISIBLE_DEVICES": "void"},
        kernel=kernel(device_nodes=[], driver_files=[], services=[]),
        nvml=replace(h100.no_driver(12, "Shared Library Not Found"), library_path=ABSENT),
        nvidia_smi=NvidiaSmi(**nothing),
        cuda=no_libcuda(),
    )


def without_compute() -> Snapshot:
    return started_without(
        "Could not find cuda drivers on your machine, GPU will not be used.",
        {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility"},
        kernel=kernel(services=[]),
        cuda=no_libcuda(),
    )


def without_utility() -> Snapshot:
    """CUDA works, and NVML, nvidia-smi and all that is asked of them are missing."""
    nothing = dict.fromkeys(("path", "exit_code", "gpus", "gpu_count", "driver_version"), ABSENT)
    snapshot = started_without(
        "",
        {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute"},
        kernel=kernel(services=[]),
        nvml=replace(h100.no_driver(12, "Shared Library Not Found"), library_path=ABSENT),
        nvidia_smi=NvidiaSmi(**nothing),
    )
    variables = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute"}
    target = good_target(tensorflow=seeing(8), environment=Environment(variables=variables))
    return replace(snapshot, target=target)
