"""The keys of a profile: what each means, and the fact that it is held against.

Reading, judging and writing a profile and comparing machines rest on this one table (and on named.py, where
the keys are names that a machine has), so a machine fits its own profile.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from . import told
from .told import Fact, adapter_name, adapters, nvlinks, package

__all__ = ["SECTIONS", "Fact", "Key", "Kind", "adapter_name", "adapters", "nvlinks", "package"]

# number: 8, or bounds (">= 8"); version: "570" (any 570.x), or bounds; switch: true or false.
Kind = Literal["number", "version", "text", "switch"]


class Key(NamedTuple):
    """words: what it is, in a sentence. fact: of a SnapshotView, a Gpu or an RdmaDevice. at: its path.

    least: a profile that is written of a machine has it as a lower bound. alike: what machines that are
    alike have in common of it, where that is not all of it.
    """

    name: str
    kind: Kind
    words: str
    comment: str
    fact: Callable[[Any], Fact]
    at: str
    least: bool = False
    alike: Callable[[Fact], Fact] | None = None


class Section(NamedTuple):
    """many: [[name]], a table for each kind of device, with a "count". document: whose facts these are."""

    comment: str
    keys: tuple[Key, ...]
    many: bool = False
    document: str = "machine"


def _one(name: str, kind: Kind, words: str, at: str, comment: str = "") -> Key:
    return Key(name, kind, words, comment, told.machine(at), at)


def _engine(name: str, kind: Kind, words: str, engine: str, field: str) -> Key:
    return Key(name, kind, words, "", told.engine(engine, field), "containers.engines")


def _service(name: str, words: str, service: str) -> Key:
    return Key(name, "switch", words, "whether it runs", told.runs(service), "kernel.services")


def _module(name: str, words: str, *modules: str) -> Key:
    comment = "whether its module is loaded"
    return Key(name, "switch", words, comment, told.module_loaded(*modules), "kernel.modules")


def _gpu(name: str, kind: Kind, words: str, comment: str = "", field: str = "") -> Key:
    field = field or name
    return Key(name, kind, words, comment, attrgetter(field), field)


def _nic(name: str, kind: Kind, words: str, comment: str = "", field: str = "") -> Key:
    return _gpu(name, kind, words, comment, field)


def _target(name: str, kind: Kind, words: str, comment: str, field: str) -> Key:
    return Key(name, kind, words, comment, told.interpreter(field), f"interpreter.{field}")


SECTIONS: dict[str, Section] = {
    "machine": Section(
        "The machine itself.",
        (
            Key(
                "os",
                "text",
                "operating system",
                "name and version",
                told.joined("host.os_id", "host.os_version"),
                "host.os_id",
            ),
            _one("kernel", "version", "kernel", "host.kernel"),
            _one("architecture", "text", "architecture", "host.architecture"),
            Key(
                "hypervisor",
                "text",
                "hypervisor",
                '"none" on bare metal',
                told.absent_is("none", "host.hypervisor"),
                "host.hypervisor",
            ),
            _one("cloud", "text", "cloud", "host.cloud"),
            Key(
                "libc",
                "text",
                "C library",
                "name and version",
                told.joined("host.libc", "host.glibc"),
                "host.libc",
            ),
            _one("cpu", "text", "processor", "host.cpu_model"),
            _one("cpus", "number", "number of CPUs", "host.cpus_present", "hardware threads"),
            Key(
                "memory_gib",
                "number",
                "memory in GiB",
                "",
                told.memory,
                "host.memory_total_mib",
                least=True,
                alike=told.memory_built_in,
            ),
            _one("numa_nodes", "number", "number of NUMA nodes", "host.numa_nodes"),
            Key(
                "nvswitches",
                "number",
                "number of NVSwitches",
                "on the PCI bus",
                told.nvswitches,
                "pci.devices",
            ),
            _one("iommu", "switch", "IOMMU", "pci.iommu"),
            _one("iommu_mode", "text", "mode of the IOMMU", "pci.iommu_mode", '"DMA", "identity"'),
            Key(
                "acs_ports",
                "number",
                "number of bridges with ACS redirection",
                "above GPUs and adapters",
                told.acs_ports,
                "pci.acs_ports",
            ),
            _one("secure_boot", "switch", "Secure Boot", "host.secure_boot"),
            _one("lockdown", "text", "lockdown of the kernel", "host.lockdown"),
            _one("selinux", "text", "SELinux", "host.selinux"),
            _one("cgroup_version", "number", "cgroup version", "host.cgroup_version"),
        ),
    ),
    "driver": Section(
        "NVIDIA's driver.",
        (
            Key(
                "version",
                "version",
                "driver",
                '"570" is any 570.x; ">= 570, < 580" bounds it',
                told.first_of(
                    "nvml.driver_version", "nvidia_smi.driver_version", "kernel.driver_version"
                ),
                "nvml.driver_version",
            ),
            Key(
                "cuda",
                "version",
                "newest CUDA of the driver",
                "",
                told.first_of("nvml.cuda_version", "nvidia_smi.cuda_version"),
                "nvml.cuda_version",
            ),
            _one(
                "flavour",
                "text",
                "kernel module",
                "kernel.driver_flavour",
                '"open" or "proprietary"',
            ),
            _service("fabric_manager", "fabric manager", "nvidia-fabricmanager"),
            Key(
                "fabric_manager_version",
                "version",
                "version of the fabric manager",
                "",
                told.version_of_service("nvidia-fabricmanager"),
                "kernel.services",
            ),
            _service("persistence_daemon", "persistence daemon", "nvidia-persistenced"),
            _module("peermem", "GPUDirect RDMA", "nvidia_peermem", "nv_peer_mem"),
            _module("gdrcopy", "GDRCopy", "gdrdrv"),
        ),
    ),
    "gpus": Section(
        "GPUs: a table for each name. Each key holds for each of them.",
        (
            _gpu("memory_mib", "number", "memory in MiB", "", "memory_total_mib"),
            Key("nvlinks", "number", "NVLinks", "how many are up", nvlinks, "nvlinks"),
            _gpu(
                "pcie_generation",
                "number",
                "PCIe generation",
                "the highest of card and slot",
                "pcie_gen_max",
            ),
            _gpu(
                "pcie_generation_card",
                "number",
                "PCIe generation of the card",
                "",
                "pcie_gen_max_device",
            ),
            _gpu(
                "pcie_generation_slot",
                "number",
                "PCIe generation of the slot",
                "",
                "pcie_gen_max_host",
            ),
            _gpu("pcie_lanes", "number", "PCIe lanes", "that the link has now", "pcie_width"),
            _gpu("pcie_lanes_card", "number", "PCIe lanes of the card", "", "pcie_width_max"),
            _gpu("ecc", "switch", "ECC", "", "ecc_enabled"),
            _gpu("mig", "switch", "MIG", "", "mig_enabled"),
            Key(
                "mig_instances",
                "text",
                "MIG instances",
                '"7 × 9856 MiB"',
                told.mig_instances,
                "mig_instances",
            ),
            _gpu("persistence", "switch", "persistence mode"),
            _gpu("compute_mode", "text", "compute mode"),
            _gpu("power_limit_w", "number", "power limit in W"),
            _gpu(
                "power_default_limit_w",
                "number",
                "power limit in W as delivered",
                "",
            ),
            _gpu("sm_clock_max_mhz", "number", "highest SM clock in MHz", "", "clock_sm_max_mhz"),
            _gpu(
                "memory_clock_max_mhz",
                "number",
                "highest memory clock in MHz",
                "",
                "clock_memory_max_mhz",
            ),
            _gpu(
                "sm_clock_set_mhz",
                "number",
                "SM clock in MHz that is set",
                "the applications clock",
                "clock_set_mhz",
            ),
            _gpu(
                "memory_clock_set_mhz",
                "number",
                "memory clock in MHz that is set",
                "",
                "clock_memory_set_mhz",
            ),
            _gpu("vbios", "text", "VBIOS"),
            _gpu("inforom", "text", "InfoROM image"),
            _gpu("board", "text", "board part number", "", "board_part_number"),
            _gpu("bar1_mib", "number", "BAR1 in MiB", "", "bar1_total_mib"),
            _gpu("gsp", "switch", "GSP firmware", "whether it runs", "gsp_enabled"),
            _gpu("virtualization", "text", "virtualization"),
            _gpu("addressing_mode", "text", "addressing mode"),
            _gpu("fabric_state", "text", "state of the NVLink fabric"),
            _gpu("fabric_health", "text", "health of the NVLink fabric"),
        ),
        many=True,
    ),
    "nics": Section(
        "Adapters for RDMA (InfiniBand, RoCE): a table for each kind.",
        (
            _nic("driver", "text", "driver"),
            _nic("firmware", "version", "firmware"),
            Key(
                "rate_gbps",
                "number",
                "rate in Gbit/s",
                "of the fastest port",
                told.fastest,
                "ports",
            ),
            Key(
                "link_layer",
                "text",
                "link layer",
                '"InfiniBand", or "Ethernet" (RoCE)',
                told.port("link_layer"),
                "ports",
            ),
            Key("state", "text", "state of its port", "", told.port("state"), "ports"),
            Key("lanes", "number", "lanes of its port", "", told.port("lanes"), "ports"),
            _nic("pcie_lanes", "number", "PCIe lanes", "that the link has now", "link_width"),
            _nic("pcie_gts", "number", "PCIe speed in GT/s", "of a lane, now", "link_gts"),
        ),
        many=True,
    ),
    "tools": Section(
        "What brings GPUs into containers.",
        (
            _one(
                "container_toolkit",
                "version",
                "NVIDIA Container Toolkit",
                "containers.toolkit_version",
            ),
            _one("libnvidia_container", "version", "libnvidia-container", "containers.cli_version"),
            _one("toolkit_mode", "text", "mode of the toolkit", "containers.toolkit_mode"),
            _engine("docker", "version", "docker", "docker", "version"),
            _engine("docker_server", "version", "docker's server", "docker", "server_version"),
            _engine(
                "docker_runtime", "text", "docker's default runtime", "docker", "default_runtime"
            ),
            _engine("docker_cgroups", "text", "docker's cgroup driver", "docker", "cgroup_driver"),
            _engine(
                "docker_storage", "text", "docker's storage driver", "docker", "storage_driver"
            ),
            _engine("podman", "version", "podman", "podman", "version"),
            _engine("apptainer", "version", "Apptainer", "apptainer", "version"),
            _engine("singularity", "version", "Singularity", "singularity", "version"),
            _engine("enroot", "version", "enroot", "enroot", "version"),
            Key(
                "kubernetes",
                "text",
                "Kubernetes",
                "its distribution and engine",
                told.kubernetes,
                "containers.kubernetes",
            ),
        ),
    ),
    "target": Section(
        "The target (--target): what its Python is. Its packages have a section of their own.",
        (
            _target("python", "version", "Python of the target", "", "version"),
            _target(
                "implementation",
                "text",
                "implementation of the target's Python",
                "",
                "implementation",
            ),
            _target("kind", "text", "kind of the target", '"virtualenv", "conda"', "kind"),
        ),
        document="target",
    ),
}

# Sections whose keys are not fixed: formats that Tensor Cores must be proven for, and packages of the target.
TENSOR_CORES, PROVEN = "tensor_cores", "proven"
FORMATS = ("tf32", "fp16", "bf16", "int8", "fp8")
PACKAGES = "packages"
# Of [[gpus]] and [[nics]], beside their keys.
COUNT, NAME = "count", "name"
# [[products]]: sections of machines of one product each, [products.driver]; its name is its GPUs.
PRODUCTS = "products"
