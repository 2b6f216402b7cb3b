"""Machines of the simulated fleet's products, all of them well: bare metal, virtual, contained …"""

from __future__ import annotations

from typing import Any

import h100
import networks
from fleet_products import BRANCHES, EVERYTHING, USUAL, Product, gpu
from h100 import NOT_SUPPORTED
from msgspec.structs import replace
from targets import good_target, tensorflow
from whole import (
    ABSENT,
    RELEASE,
    containers,
    docker,
    host,
    in_container,
    kernel,
    node,
    unloaded,
    whole,
)

from envcheck.facts.containers import Kubernetes, OfferedDevices
from envcheck.facts.gpu import Gpu, MigInstance, NvLink
from envcheck.facts.kernel import DkmsState, DriverPackage, KernelModule, ModuleFile, Service
from envcheck.facts.pci import Pci, PciDevice
from envcheck.facts.snapshot import Document, Snapshot
from envcheck.facts.target import Environment, FrameworkGpu


def machine(
    product: Product,
    branch: int = USUAL,
    count: int = 1,
    target: Document | None = None,
    gpus: list[Gpu] | None = None,
    **changes: Any,
) -> Snapshot:
    """The machine on bare metal; keyword arguments replace its probes."""
    version, newest = BRANCHES[branch]
    gpus = [gpu(product, n, branch) for n in range(count)] if gpus is None else gpus
    versions = {"driver_version": version, "cuda_version": newest}
    widths = {"link_width": product.lanes, "max_link_width": product.lanes}
    devices = bus(product, len(gpus), slot_max_link_width=16, **widths)
    if product.switch and count == 8:
        devices += [h100.pci_device(f"0000:{bus:02x}:00.0", "nvswitch") for bus in (7, 8, 9, 10)]
    network = networks.roce if product.module else networks.plain_server
    network = networks.desktop if product.consumer else network
    probes: dict[str, Any] = {
        "pci": Pci(devices=devices),
        "kernel": driver_side(product, version, count),
        "nvml": h100.nvml(gpus, pairs=_pairs(product, count), **versions),
        "nvidia_smi": h100.smi(gpus, **versions),
        "cuda": h100.cuda(
            gpus, driver_api_version=newest, library_real_path=f"{h100.LIB}/libcuda.so.{version}"
        ),
        "containers": containers(docker()),
        "network": network(),
    }
    snapshot = whole(target, **(probes | changes))
    return snapshot if target is not None else replace(snapshot, target=None)


def bus(product: Product, count: int, **changes: Any) -> list[PciDevice]:
    device_id = f"10de:{product.device_id}"
    return [h100.pci_device(at, device_id=device_id, **changes) for at in h100.ADDRESSES[:count]]


# The slots of virtual machines are made up.
NO_SLOT = {"slot_max_link_width": ABSENT, "slot_max_link_gts": ABSENT}


def driver_side(product: Product, version: str, count: int, **changes: Any) -> Any:
    branch = version.partition(".")[0]
    flavour = "open" if float(product.capability) >= 7.5 and int(branch) >= 560 else "proprietary"
    open_suffix = "-open" if flavour == "open" else ""
    packages = (f"nvidia-driver{open_suffix}", f"nvidia-dkms{open_suffix}", "libnvidia-compute")
    managed = product.switch or "B200" in product.name
    module = f"/lib/modules/{RELEASE}/updates/dkms/nvidia.ko"
    peers = "nvidia_peermem" if int(branch) >= 470 else "nv_peer_mem"
    names = ("nvidia", "nvidia_uvm", *([peers] if product.module else []))
    facts: dict[str, Any] = {
        "modules": [KernelModule(name=name, version=version) for name in names],
        "driver_version": version,
        "driver_flavour": flavour,
        "device_nodes": [
            node(path) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm", *h100.NODES[:count])
        ],
        "driver_packages": [
            DriverPackage(manager="dpkg", name=f"{name}-{branch}", version=f"{version}-0ubuntu1")
            for name in packages
        ],
        "module_files": [ModuleFile(kernel=RELEASE, path=module, version=version, flavour=flavour)],
        "dkms": [DkmsState(module="nvidia", version=version, kernel=RELEASE, state="installed")],
        "services": [
            Service(name="nvidia-persistenced", installed=True, running=not product.consumer),
            Service(
                name="nvidia-fabricmanager", installed=managed, running=managed, version=version
            ),
        ],
    }
    return kernel(version, **(facts | changes))


def _pairs(product: Product, count: int) -> Any:
    pairs = h100.nvml([]).pairs
    names = h100.ADDRESSES[:count]
    versions = "ok" if product.module or not product.consumer else "chipset not supported"
    assert isinstance(pairs, list)
    return [
        replace(pair, p2p_read=versions) for pair in pairs if {pair.first, pair.second} <= {*names}
    ]


def virtual(product: Product, branch: int = USUAL, count: int = 1) -> Snapshot:
    """A virtual machine with GPUs passed through: no NVSwitch on its bus, slots that are made up."""
    handed = [gpu(product, n, branch, virtualization="Pass-Through") for n in range(count)]
    return passed_through(product, branch, handed)


def passed_through(product: Product, branch: int, gpus: list[Gpu]) -> Snapshot:
    return machine(
        product,
        branch,
        len(gpus),
        gpus=gpus,
        pci=Pci(devices=bus(product, len(gpus), **NO_SLOT)),
        kernel=driver_side(product, BRANCHES[branch][0], len(gpus), services=[]),
        host=host(hypervisor="kvm", rdma_devices=[]),
        network=networks.network(),
    )


def single_in_vm(product: Product, branch: int = USUAL) -> Snapshot:
    """One GPU of a board of several, handed to a virtual machine by itself: it has no peer to link to."""
    links = [NvLink(link=n, active=False) for n in range(product.links)]
    names = ("fabric_state", "fabric_status", "fabric_clique", "fabric_cluster")
    facts: dict[str, Any] = dict.fromkeys(names, NOT_SUPPORTED)
    facts |= {"virtualization": "Pass-Through", "nvlinks": links or NOT_SUPPORTED}
    alone = gpu(product, 0, branch, **facts)
    return passed_through(product, branch, [alone])


HIDDEN_FROM_GUESTS = (
    "ecc_", "remap_", "retired_", "temperature_", "power_", "pcie_", "clock_", "slowdown_", "sram_",
    "fabric_", "inforom", "gsp_", "vbios",
)  # fmt: skip


def vgpu(product: Product, branch: int = USUAL) -> Snapshot:
    """A virtual GPU with its licence: hardly anything of the board can be seen."""
    facts: dict[str, Any] = {
        name: NOT_SUPPORTED for name in EVERYTHING if name.startswith(HIDDEN_FROM_GUESTS)
    }
    facts |= {"name": product.vgpu, "virtualization": "VGPU"}
    one = gpu(product, 0, branch, vgpu_licence="Licensed (Expiry: N/A)", **facts)
    version, flavour = BRANCHES[branch][0], "proprietary"
    module = ModuleFile(
        kernel=RELEASE, path="/lib/modules/nvidia.ko", version=version, flavour=flavour
    )
    links = dict.fromkeys(("link_width", "max_link_width", "link_gts", "max_link_gts"), ABSENT)
    return machine(
        product,
        branch,
        gpus=[one],
        pci=Pci(devices=bus(product, 1, **links, **NO_SLOT)),
        kernel=driver_side(
            product, version, 1, driver_flavour=flavour, services=[], module_files=[module]
        ),
        host=host(hypervisor="vmware", rdma_devices=[]),
    )


def mig(product: Product, branch: int = USUAL) -> Snapshot:
    """MIG on one of two GPUs; the instances' GPU has no NVLink in use."""
    halves = [
        MigInstance(gpu_instance=n, compute_instance=0, uuid=f"MIG-<uuid-{n}>", multiprocessors=42)
        for n in (1, 2)
    ]
    links = [NvLink(link=n, active=False) for n in range(product.links)] or NOT_SUPPORTED
    divided = gpu(
        product, 0, branch, mig_enabled=True, mig_pending=True, mig_instances=halves, nvlinks=links
    )
    both = [divided, gpu(product, 1, branch)]
    first = h100.cuda(both[:1], driver_api_version=BRANCHES[branch][1])
    variables = {"CUDA_VISIBLE_DEVICES": "MIG-<uuid-1>"}
    return machine(product, branch, 2, gpus=both, cuda=first, target=seeing(product, 1, variables))


def wsl(product: Product, branch: int = USUAL) -> Snapshot:
    """Windows' driver below Linux: no module, no PCI device, no node."""
    folder = "/usr/lib/wsl/lib"
    version, newest = BRANCHES[branch]
    facts: dict[str, Any] = {"gsp_enabled": NOT_SUPPORTED}
    facts |= {"persistence": True, "driver_model": "WDDM", "memory_used_mib": 1400}
    one = gpu(product, 0, branch, **facts)
    versions = {"driver_version": version, "cuda_version": newest}
    return machine(
        product,
        branch,
        gpus=[one],
        host=host(
            wsl=True,
            hypervisor="microsoft",
            kernel="5.15.167.4-microsoft-standard-WSL2",
            rdma_devices=[],
        ),
        network=networks.network(interfaces=[networks.LO, networks.interface("eth0", 2)]),
        pci=Pci(devices=[]),
        kernel=unloaded(
            module_files=[],
            dkms=ABSENT,
            driver_packages=[],
            kept_out=[],
            driver_files=[h100.file(name, "1", folder) for name in ("libcuda", "libnvidia-ml")],
        ),
        nvml=h100.nvml([one], library_path=f"{folder}/libnvidia-ml.so.1", pairs=[], **versions),
        cuda=h100.cuda(
            [one],
            library_path=f"{folder}/libcuda.so.1",
            library_real_path=ABSENT,
            driver_api_version=newest,
        ),
        containers=containers(docker(cgroup_driver="cgroupfs")),
    )


def contained(product: Product, branch: int = USUAL, runs: str = "docker") -> Snapshot:
    """Inside a container with one GPU: the bus shows it all, the rest of the host is not to be seen."""
    version = BRANCHES[branch][0]
    side = driver_side(
        product,
        version,
        1,
        services=[],
        driver_packages=[],
        module_files=[],
        dkms=ABSENT,
        kernels_installed=ABSENT,
        reboot_required=ABSENT,
        log=ABSENT,
        driver_files=[
            replace(h100.file(name, version), mounted=True) for name in ("libcuda", "libnvidia-ml")
        ],
    )
    variables = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    return machine(
        product,
        branch,
        host=in_container(container=runs),
        network=networks.container(),
        kernel=side,
        containers=None,
        target=seeing(product, 1, variables),
    )


def kubernetes_node(product: Product, branch: int = USUAL, count: int = 8) -> Snapshot:
    """A node of Kubernetes: containerd with NVIDIA's runtime, which pods ask for by RuntimeClass."""
    node = Kubernetes(
        distribution="kubelet",
        engine="containerd",
        config="/etc/containerd/config.toml",
        runtimes=["nvidia", "runc"],
        nvidia_runtimes=["nvidia"],
        default_runtime="runc",
        cgroup_driver="systemd",
        cdi_enabled=True,
        cdi_spec_dirs=["/etc/cdi", "/var/run/cdi"],
        passes_devices=True,
        offered=[OfferedDevices(resource="nvidia.com/gpu", count=count)],
    )
    found = replace(containers(), engines=[], kubernetes=node)
    return machine(product, branch, count, containers=found)


def slurm(product: Product, branch: int = USUAL, count: int = 8, given: int = 2) -> Snapshot:
    """A job to which cgroups leave some of the node's GPUs: the others are on the bus, and closed."""
    whole_node = machine(product, branch, count)
    closed = [node(path, usable=False) for path in h100.NODES[given:count]]
    side = driver_side(product, BRANCHES[branch][0], count)
    side = replace(side, device_nodes=[*side.device_nodes[: given + 2], *closed])
    chosen = ",".join(map(str, range(given)))
    variables = {"CUDA_VISIBLE_DEVICES": chosen, "SLURM_JOB_ID": "4711", "SLURM_JOB_GPUS": chosen}
    pci = whole_node.machine.pci
    assert pci is not None and pci.facts is not None
    return machine(
        product, branch, given, pci=pci.facts, kernel=side, target=seeing(product, given, variables)
    )


def seeing(product: Product, count: int, variables: dict[str, str]) -> Document | None:
    """A TensorFlow that sees these GPUs; None where TensorFlow 2.19 has no code for them."""
    if float(product.capability) >= 10:
        return None
    gpus = [FrameworkGpu(name=product.name, compute_capability=product.capability)] * count
    return good_target(
        tensorflow=tensorflow(gpus=gpus), environment=Environment(variables=variables)
    )
