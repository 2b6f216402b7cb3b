"""Machines on which all is well, though something about them looks odd."""

from __future__ import annotations

from collections.abc import Callable

import h100
import networks
from h100 import ADDRESSES, COUNT, NODES
from modes_parts import ALL, geforce
from msgspec.structs import replace
from targets import dist, good_target, packages, tensorflow
from whole import (
    ABSENT,
    containers,
    docker,
    host,
    in_container,
    kernel,
    nodes,
    seeing,
    unloaded,
    whole,
    with_target,
)

from envcheck.facts.base import Unavailable
from envcheck.facts.kernel import KernelModule, Service
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Document, Snapshot
from envcheck.facts.target import Environment, FrameworkGpu, Loader


def desktop(target: Document | None = None, **changes: object) -> Snapshot:
    seen = good_target(tensorflow=tensorflow(gpus=[FrameworkGpu(name="NVIDIA GeForce RTX 4080")]))
    return whole(target or seen, **({"network": networks.desktop()} | geforce() | changes))


def one_gpu(name: str, slot: int, **facts: object) -> Snapshot:
    """One data-centre GPU at work in a slot of so many lanes."""
    gpu = h100.gpu(
        0,
        name=name,
        nvlinks=h100.NOT_SUPPORTED,
        pcie_gen=3,
        pcie_gen_max=3,
        **{"pcie_width": 8, "pcie_width_max": 16, "compute_capability": "7.5", **facts},
        **dict.fromkeys(("fabric_state", "fabric_status", "fabric_health"), h100.NOT_SUPPORTED),
    )
    device = h100.pci_device(
        ADDRESSES[0], device_id="10de:1eb8", link_width=8, slot_max_link_width=slot
    )
    return desktop(
        good_target(tensorflow=tensorflow(gpus=[FrameworkGpu(name=name)])),
        pci=Pci(devices=[device]),
        nvml=h100.nvml([gpu], pairs=[]),
        nvidia_smi=h100.smi([gpu]),
        cuda=h100.cuda([gpu]),
    )


def says_little() -> Snapshot:
    """A driver to which nearly everything is "not supported"."""
    result = ("index", "pci_address", "uuid", "name", "compute_capability", "memory_total_mib")
    everything = [name for name in h100.gpu().__struct_fields__ if name not in result]
    gpu = h100.gpu(
        0, **dict.fromkeys(everything, h100.NOT_SUPPORTED), name="NVIDIA GeForce GTX 1080"
    )
    return desktop(
        nvml=h100.nvml([gpu], pairs=h100.NOT_SUPPORTED),
        nvidia_smi=h100.smi([gpu]),
        cuda=h100.cuda([gpu]),
    )


def wsl() -> Snapshot:
    """The driver is Windows' own: no module, no PCI device, no node but /dev/dxg."""
    probes = geforce(name="NVIDIA A10", brand="NVIDIA")
    (gpu,) = probes["nvml"].gpus  # type: ignore[attr-defined]
    folder = "/usr/lib/wsl/lib"
    return desktop(
        host=host(wsl=True, hypervisor="microsoft", kernel="5.15.167.4-microsoft-standard-WSL2"),
        pci=Pci(devices=[]),
        kernel=unloaded(
            module_files=[],
            dkms=ABSENT,
            driver_packages=[],
            driver_files=[h100.file(name, "1", folder) for name in ("libcuda", "libnvidia-ml")],
            kept_out=[],
        ),
        nvml=h100.nvml([gpu], library_path=f"{folder}/libnvidia-ml.so.1", pairs=[]),
        nvidia_smi=h100.smi([gpu]),
        cuda=h100.cuda([gpu], library_path=f"{folder}/libcuda.so.1", library_real_path=ABSENT),
        containers=containers(docker(cgroup_driver="cgroupfs")),
    )


def guest() -> Snapshot:
    """A virtual machine with a GPU passed through: its slots are made up."""
    gpu = h100.gpu(0, virtualization="None", pcie_width=1, nvlinks=[], pcie_gen=1)
    device = h100.pci_device(ADDRESSES[0], link_width=1, slot_max_link_width=16)
    seen = good_target(tensorflow=seeing(1))
    return desktop(
        seen,
        host=host(hypervisor="kvm"),
        pci=Pci(devices=[device]),
        nvml=h100.nvml([gpu], pairs=[]),
        nvidia_smi=h100.smi([gpu]),
        cuda=h100.cuda([gpu]),
        kernel=kernel(device_nodes=nodes(*NODES[1:]), services=[]),
    )


def forward_compatible() -> Snapshot:
    """NVIDIA's container of CUDA 12.4 on a driver of 12.2: it brings a newer libcuda."""
    folder = "/usr/local/cuda/compat/lib"
    variables = {
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility,video",
    }
    compat = {
        "library_path": f"{folder}/libcuda.so.1",
        "library_real_path": f"{folder}.real/libcuda.so.550.54.15",
        "driver_api_version": "12.4",
    }
    return whole(
        good_target(tensorflow=seeing(8), environment=Environment(variables=variables)),
        host=in_container(),
        kernel=kernel(services=[]),
        containers=None,
        network=networks.container(),
        nvml=h100.nvml(ALL, cuda_version="12.4"),
        nvidia_smi=h100.smi(ALL, cuda_version="12.4"),
        cuda=h100.cuda(ALL, **compat),
    )


def unprivileged() -> Snapshot:
    """A user who may not read the kernel's log, nor what only root may."""
    closed = Unavailable(unavailable="no-permission")
    return whole(kernel=kernel(log=closed, reboot_required_by=closed))


def mig_in_use() -> Snapshot:
    gpus = [
        h100.gpu(
            n, mig_enabled=True, mig_pending=True, mig_instances=[h100.mig_instance()], nvlinks=[]
        )
        for n in range(COUNT)
    ]
    first = h100.cuda(gpus[:1])
    return whole(
        good_target(
            tensorflow=seeing(1),
            environment=Environment(variables={"CUDA_VISIBLE_DEVICES": "MIG-<uuid-99>"}),
        ),
        nvml=h100.nvml(gpus),
        nvidia_smi=h100.smi(gpus),
        cuda=first,
    )


def from_the_future() -> Snapshot:
    """A driver, a CUDA and a GPU that no table has."""
    driver, cuda = "710.33.01", "14.2"
    gpu = h100.gpu(0, name="NVIDIA R300", compute_capability="13.0", architecture="?", nvlinks=[])
    return whole(
        good_target(
            packages=packages(dist("tensorflow", "3.1.0"), dist("numpy", "3.0.1")),
            tensorflow=tensorflow(
                version="3.1.0",
                built_cuda="14.1.0",
                built_cudnn="11",
                built_capabilities=["sm_130", "compute_130"],
                gpus=[FrameworkGpu(name="NVIDIA R300")],
                libraries=[],
            ),
            loader=Loader(),
        ),
        pci=Pci(devices=[h100.pci_device(ADDRESSES[0], device_id="10de:3aaa")]),
        nvml=h100.nvml([gpu], driver_version=driver, cuda_version=cuda, pairs=[]),
        nvidia_smi=h100.smi([gpu], driver_version=driver, cuda_version=cuda),
        cuda=h100.cuda([gpu], driver_api_version=cuda),
        kernel=kernel(
            driver,
            driver_version=driver,
            modules=[KernelModule(name=name, version=driver) for name in ("nvidia", "nvidia_uvm")],
            device_nodes=nodes(*NODES[1:]),
            services=[Service(name="nvidia-persistenced", installed=True, running=True)],
        ),
    )


def idle_t4() -> Snapshot:
    snapshot = one_gpu(
        "Tesla T4",
        8,
        utilization_percent=0,
        clock_event_reasons=["gpu_idle"],
        performance_state="P8",
    )
    device = h100.pci_device(ADDRESSES[0], link_width=8, slot_max_link_width=ABSENT)
    machine = snapshot.machine
    assert machine.pci is not None
    pci = replace(machine.pci, facts=Pci(devices=[device]))
    return replace(snapshot, machine=replace(machine, pci=pci))


# "False alarms to avoid", and other machines on which all is well. That a ratio of TF32 to FP32 of 1 is
# no failure on a GeForce, and what a matrix of zeros does to a rate, are matters of kernels that run.
WELL: dict[str, Callable[[], Snapshot]] = {
    "an 8 × H100 machine": whole,
    "a T4 at x8 in a slot of 8 lanes": lambda: one_gpu("Tesla T4", 8, brand="Tesla"),
    "an L40S at x8 in a slot of 8 lanes": lambda: one_gpu(
        "NVIDIA L40S", 8, compute_capability="8.9"
    ),
    "an idle GeForce at generation 1": desktop,
    "an idle T4 at x8 in a slot that is not known": idle_t4,
    "a GPU to which most is not supported": says_little,
    "WSL2": wsl,
    "a virtual machine": guest,
    "forward compatibility in NVIDIA's container": forward_compatible,
    "a user without root": unprivileged,
    "MIG in use": mig_in_use,
    "what no table has": from_the_future,
    "two of eight GPUs chosen": lambda: with_target(
        tensorflow=seeing(2), environment=Environment(variables={"CUDA_VISIBLE_DEVICES": "6,7"})
    ),
    "Secure Boot with a signed module": lambda: whole(host=host(secure_boot=True)),
    "a reboot for other packages": lambda: whole(
        kernel=kernel(reboot_required=True, reboot_required_by=["libc6", "dbus"])
    ),
    "no target": lambda: replace(whole(), target=None),
}
