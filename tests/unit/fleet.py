"""A fleet of simulated machines on which all is well: products × circumstances × driver branches.

Each is made of what such a machine tells, as far as documents of real ones and NVIDIA's descriptions
say: no NVLink on a card, no ECC on a GeForce, no NVSwitch in a virtual machine, no fabric and no
recovery action before the drivers that have them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import h100
import networks
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
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Document, Snapshot
from envcheck.facts.target import Environment, FrameworkGpu


class Product(NamedTuple):
    """A row of fleet.csv: what the driver says of a GPU."""

    name: str
    capability: str
    architecture: str
    memory: int  # MiB
    device_id: str
    power: float  # W
    clock: int  # MHz
    since: int  # driver branch
    until: int
    generation: int  # PCIe
    lanes: int
    ecc: bool
    links: int  # NVLinks in use on a board of several
    switch: bool  # NVSwitches on the PCI bus
    mig: bool
    vgpu: str  # its name as a vGPU, or ""

    @property
    def module(self) -> bool:
        return self.links > 0

    @property
    def consumer(self) -> bool:
        return "GeForce" in self.name or "TITAN" in self.name


def _read(row: dict[str, str]) -> Product:
    numbers = ("memory", "clock", "since", "generation", "lanes", "links")
    marks = ("ecc", "switch", "mig")
    return Product(
        **(
            row
            | {name: int(row[name]) for name in numbers}
            | {name: row[name] == "yes" for name in marks}
            | {"until": int(row["until"] or 999), "power": float(row["power"])}
        )  # type: ignore[arg-type]
    )


PRODUCTS = [_read(row) for row in csv.DictReader((Path(__file__).parent / "fleet.csv").open())]

# {branch: (version, newest CUDA)}; those above 590 as documents of real machines have them
BRANCHES = {
    450: ("450.248.02", "11.0"),
    460: ("460.106.00", "11.2"),
    470: ("470.256.02", "11.4"),
    515: ("515.105.01", "11.7"),
    525: ("525.147.05", "12.0"),
    535: ("535.183.06", "12.2"),
    550: ("550.144.03", "12.4"),
    560: ("560.35.05", "12.6"),
    570: ("570.172.08", "12.8"),
    580: ("580.95.05", "13.0"),
    590: ("590.48.01", "13.1"),
    610: ("610.57.04", "13.3"),
}
_USUAL = 580


def gpu(product: Product, index: int, branch: int, **changes: Any) -> Gpu:
    """One GPU of the product, idle, as a driver of that branch tells of it."""
    hbm = product.capability in ("8.0", "9.0", "10.0")
    facts: dict[str, Any] = dict.fromkeys(_EVERYTHING, NOT_SUPPORTED)
    facts |= {
        "index": index,
        "pci_address": h100.ADDRESSES[index],
        "uuid": f"GPU-<uuid-{index + 1}>",
        "name": product.name,
        "brand": "GeForce" if product.consumer else "NVIDIA",
        "architecture": product.architecture,
        "compute_capability": product.capability,
        "minor_number": index,
        "vbios": "96.00.74.00.1A",
        "inforom": NOT_SUPPORTED if product.consumer else "G520.0200.00.05",
        "inforom_valid": NOT_SUPPORTED if product.consumer else True,
        "gsp_firmware": BRANCHES[branch][0] if branch >= 525 else NOT_SUPPORTED,
        "gsp_enabled": True if branch >= 525 else NOT_SUPPORTED,
        "virtualization": "None",
        "persistence": not product.consumer,
        "compute_mode": "Default",
        "performance_state": "P0" if hbm else "P8",
        "memory_total_mib": product.memory,
        "memory_used_mib": 4,
        "memory_free_mib": product.memory - 600,
        "bar1_total_mib": 256 if product.consumer else 131072,
        "bar1_used_mib": 2,
        "temperature_c": 34,
        "temperature_slowdown_c": 87,
        "temperature_shutdown_c": 92,
        "power_draw_w": product.power * 0.14,
        "power_limit_w": product.power,
        "power_default_limit_w": product.power,
        "power_min_limit_w": product.power * 0.4,
        "power_max_limit_w": product.power,
        "clock_sm_mhz": 345 if hbm else 210,
        "clock_memory_mhz": 1593 if hbm else 405,
        "clock_sm_max_mhz": product.clock,
        "clock_memory_max_mhz": 2619,
        "clock_event_reasons": ["gpu_idle"],
        "utilization_percent": 0,
        "pcie_gen": product.generation if product.module else 1,
        "pcie_gen_max": product.generation,
        "pcie_gen_max_device": product.generation,
        "pcie_width": product.lanes,
        "pcie_width_max": product.lanes,
        "pcie_replays": 0,
        "processes": [],
    }
    if product.ecc:
        counts = [name for name in _EVERYTHING if name.startswith(("ecc_corr", "ecc_uncorr"))]
        facts |= dict.fromkeys(counts, 0) | {"ecc_enabled": True, "ecc_pending": True}
    if product.ecc and float(product.capability) >= 8:
        facts |= {"remap_correctable": 0, "remap_uncorrectable": 0}
        facts |= {"remap_pending": False, "remap_failed": False}
        facts |= {"remap_banks_max": 640, "remap_banks_high": 0, "remap_banks_partial": 0}
        facts |= {"remap_banks_low": 0, "remap_banks_none": 0}
    elif product.ecc:
        facts |= {"retired_single_bit": 0, "retired_double_bit": 0, "retired_pending": False}
    if product.mig and branch >= 450:
        facts |= {"mig_enabled": False, "mig_pending": False, "mig_instances": []}
    if product.module:
        facts["nvlinks"] = [
            NvLink(link=n, active=True, crc_errors=0, replay_errors=0, recovery_errors=0)
            for n in range(product.links)
        ]
    if branch >= 535 and product.ecc:
        facts["sram_threshold_exceeded"] = False
    if branch >= 535 and (product.switch or product.name.endswith("B200")):
        facts |= {"fabric_state": "Completed", "fabric_status": "Success"}
        facts |= {"fabric_clique": 0, "fabric_cluster": "00000000-0000-0000-0000-000000000000"}
    if branch >= 570 and product.ecc:
        facts |= {"recovery_action": "None", "channel_repair_pending": False}
        facts |= {"tpc_repair_pending": False, "unrepairable_memory": False}
    if branch >= 560:
        facts |= {name: 0 for name in _EVERYTHING if name.startswith("slowdown_")}
    return Gpu(**(facts | changes))


_SAID_OTHERWISE = {"driver_model", "vgpu_licence", "addressing_mode"}
_EVERYTHING = [name for name in Gpu.__struct_fields__ if name not in _SAID_OTHERWISE]


def machine(
    product: Product,
    branch: int = _USUAL,
    count: int = 1,
    target: Document | None = None,
    gpus: list[Gpu] | None = None,
    **changes: Any,
) -> Snapshot:
    """The machine on bare metal; keyword arguments replace its probes."""
    version, newest = BRANCHES[branch]
    gpus = [gpu(product, n, branch) for n in range(count)] if gpus is None else gpus
    told = {"driver_version": version, "cuda_version": newest}
    devices = [
        h100.pci_device(
            str(one.pci_address),
            device_id=f"10de:{product.device_id}",
            link_width=product.lanes,
            max_link_width=product.lanes,
            slot_max_link_width=16,
        )
        for one in gpus
    ]
    if product.switch and count == 8:
        devices += [h100.pci_device(f"0000:{bus:02x}:00.0", "nvswitch") for bus in (7, 8, 9, 10)]
    probes: dict[str, Any] = {
        "pci": Pci(devices=devices),
        "kernel": driver_side(product, version, count),
        "nvml": h100.nvml(gpus, pairs=_pairs(product, count), **told),
        "nvidia_smi": h100.smi(gpus, **told),
        "cuda": h100.cuda(
            gpus, driver_api_version=newest, library_real_path=f"{h100.LIB}/libcuda.so.{version}"
        ),
        "containers": containers(docker()),
        "network": networks.desktop()
        if product.consumer
        else networks.roce()
        if product.module
        else networks.plain_server(),
    }
    snapshot = whole(target, **(probes | changes))
    return snapshot if target is not None else replace(snapshot, target=None)


def driver_side(product: Product, version: str, count: int, **changes: Any) -> Any:
    branch = version.partition(".")[0]
    flavour = "open" if float(product.capability) >= 7.5 and int(branch) >= 560 else "proprietary"
    open_suffix = "-open" if flavour == "open" else ""
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
            for name in (
                f"nvidia-driver{open_suffix}",
                f"nvidia-dkms{open_suffix}",
                "libnvidia-compute",
            )
        ],
        "module_files": [ModuleFile(kernel=RELEASE, path=module, version=version, flavour=flavour)],
        "dkms": [DkmsState(module="nvidia", version=version, kernel=RELEASE, state="installed")],
        "services": [
            Service(name="nvidia-persistenced", installed=True, running=not product.consumer),
            Service(
                name="nvidia-fabricmanager",
                installed=product.switch or "B200" in product.name,
                running=product.switch or "B200" in product.name,
                version=version,
            ),
        ],
    }
    return kernel(version, **(facts | changes))


def _pairs(product: Product, count: int) -> Any:
    pairs = h100.nvml([]).pairs
    names = h100.ADDRESSES[:count]
    told = "ok" if product.module or not product.consumer else "chipset not supported"
    assert isinstance(pairs, list)
    return [replace(pair, p2p_read=told) for pair in pairs if {pair.first, pair.second} <= {*names}]


def virtual(product: Product, branch: int = _USUAL, count: int = 1) -> Snapshot:
    """A virtual machine with GPUs passed through: no NVSwitch on its bus, slots that are made up."""
    handed = [gpu(product, n, branch, virtualization="Pass-Through") for n in range(count)]
    devices = [
        h100.pci_device(
            str(one.pci_address),
            device_id=f"10de:{product.device_id}",
            slot_max_link_width=ABSENT,
            slot_max_link_gts=ABSENT,
        )
        for one in handed
    ]
    no_manager = driver_side(product, BRANCHES[branch][0], count, services=[])
    return machine(
        product,
        branch,
        count,
        gpus=handed,
        host=host(hypervisor="kvm", rdma_devices=[]),
        network=networks.network(),
        pci=Pci(devices=devices),
        kernel=no_manager,
    )


def single_in_vm(product: Product, branch: int = _USUAL) -> Snapshot:
    """One GPU of a board of several, handed to a virtual machine by itself: it has no peer to link to."""
    links = [NvLink(link=n, active=False) for n in range(product.links)]
    alone = gpu(
        product,
        0,
        branch,
        virtualization="Pass-Through",
        nvlinks=links or NOT_SUPPORTED,
        **dict.fromkeys(
            ("fabric_state", "fabric_status", "fabric_clique", "fabric_cluster"), NOT_SUPPORTED
        ),
    )
    device = h100.pci_device(
        h100.ADDRESSES[0],
        device_id=f"10de:{product.device_id}",
        slot_max_link_width=ABSENT,
        slot_max_link_gts=ABSENT,
    )
    return machine(
        product,
        branch,
        gpus=[alone],
        host=host(hypervisor="kvm", rdma_devices=[]),
        network=networks.network(),
        pci=Pci(devices=[device]),
        kernel=driver_side(product, BRANCHES[branch][0], 1, services=[]),
    )


def vgpu(product: Product, branch: int = _USUAL) -> Snapshot:
    """A virtual GPU with its licence: hardly anything of the board can be seen."""
    hidden = (
        "ecc_",
        "remap_",
        "retired_",
        "temperature_",
        "power_",
        "pcie_",
        "clock_",
        "slowdown_",
        "sram_",
        "fabric_",
        "inforom",
        "gsp_",
        "vbios",
    )
    facts = {name: NOT_SUPPORTED for name in _EVERYTHING if name.startswith(hidden)}
    one = gpu(
        product,
        0,
        branch,
        **facts,
        name=product.vgpu,
        virtualization="VGPU",
        vgpu_licence="Licensed (Expiry: N/A)",
    )
    device = h100.pci_device(
        h100.ADDRESSES[0],
        device_id=f"10de:{product.device_id}",
        **dict.fromkeys(("link_width", "max_link_width", "link_gts", "max_link_gts"), ABSENT),
        slot_max_link_width=ABSENT,
        slot_max_link_gts=ABSENT,
    )
    side = driver_side(
        product,
        BRANCHES[branch][0],
        1,
        driver_flavour="proprietary",
        services=[],
        module_files=[
            ModuleFile(
                kernel=RELEASE,
                path="/lib/modules/nvidia.ko",
                version=BRANCHES[branch][0],
                flavour="proprietary",
            )
        ],
    )
    return machine(
        product,
        branch,
        gpus=[one],
        pci=Pci(devices=[device]),
        kernel=side,
        host=host(hypervisor="vmware", rdma_devices=[]),
    )


def mig(product: Product, branch: int = _USUAL) -> Snapshot:
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


def wsl(product: Product, branch: int = _USUAL) -> Snapshot:
    """Windows' driver below Linux: no module, no PCI device, no node."""
    folder = "/usr/lib/wsl/lib"
    version, newest = BRANCHES[branch]
    one = gpu(
        product,
        0,
        branch,
        persistence=True,
        driver_model="WDDM",
        gsp_enabled=NOT_SUPPORTED,
        gsp_firmware=NOT_SUPPORTED,
        memory_used_mib=1400,
    )
    told = {"driver_version": version, "cuda_version": newest}
    return machine(
        product,
        branch,
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
            blacklisted=[],
            driver_files=[h100.file(name, "1", folder) for name in ("libcuda", "libnvidia-ml")],
        ),
        nvml=h100.nvml([one], library_path=f"{folder}/libnvidia-ml.so.1", pairs=[], **told),
        nvidia_smi=h100.smi([one], **told),
        cuda=h100.cuda(
            [one],
            library_path=f"{folder}/libcuda.so.1",
            library_real_path=ABSENT,
            driver_api_version=newest,
        ),
        containers=containers(docker(cgroup_driver="cgroupfs")),
    )


def contained(product: Product, branch: int = _USUAL, runs: str = "docker") -> Snapshot:
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


def kubernetes_node(product: Product, branch: int = _USUAL, count: int = 8) -> Snapshot:
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


def slurm(product: Product, branch: int = _USUAL, count: int = 8, given: int = 2) -> Snapshot:
    """A job to which cgroups leave some of the node's GPUs: the others are on the bus, and closed."""
    whole_node = machine(product, branch, count)
    mine = [gpu(product, n, branch) for n in range(given)]
    version, newest = BRANCHES[branch]
    told = {"driver_version": version, "cuda_version": newest}
    open_nodes = ("/dev/nvidiactl", "/dev/nvidia-uvm", *h100.NODES[:given])
    closed = h100.NODES[given:count]
    side = driver_side(
        product,
        version,
        count,
        device_nodes=[node(path) for path in open_nodes]
        + [node(path, usable=False) for path in closed],
    )
    chosen = ",".join(map(str, range(given)))
    variables = {"CUDA_VISIBLE_DEVICES": chosen, "SLURM_JOB_ID": "4711", "SLURM_JOB_GPUS": chosen}
    pci = whole_node.machine.pci
    assert pci is not None and pci.facts is not None
    return machine(
        product,
        branch,
        given,
        pci=pci.facts,
        kernel=side,
        nvml=h100.nvml(mine, pairs=_pairs(product, given), **told),
        nvidia_smi=h100.smi(mine, **told),
        target=seeing(product, given, variables),
    )


def seeing(product: Product, count: int, variables: dict[str, str]) -> Document | None:
    """A TensorFlow that sees these GPUs; None where TensorFlow 2.19 has no code for them."""
    if float(product.capability) >= 10:
        return None
    gpus = [FrameworkGpu(name=product.name, compute_capability=product.capability)] * count
    return good_target(
        tensorflow=tensorflow(gpus=gpus), environment=Environment(variables=variables)
    )


def odd() -> Iterator[tuple[str, Snapshot]]:
    """Machines that look odd and are well."""
    named = {product.name: product for product in PRODUCTS}
    big, small = named["NVIDIA GeForce RTX 4090"], named["NVIDIA GeForce RTX 3060"]
    both = [gpu(big, 0, _USUAL), gpu(small, 1, _USUAL)]
    yield "an RTX 4090 beside an RTX 3060", machine(big, count=2, gpus=both)

    laptop = big._replace(
        name="NVIDIA GeForce RTX 4070 Laptop GPU", memory=8188, lanes=8, power=115
    )
    unsaid = dict.fromkeys(("power_limit_w", "power_default_limit_w"), NOT_SUPPORTED)
    yield "a laptop", machine(laptop, gpus=[gpu(laptop, 0, _USUAL, **unsaid)])

    slow = gpu(small, 0, _USUAL, pcie_width=4)
    slot = h100.pci_device(
        h100.ADDRESSES[0], device_id="10de:2504", link_width=4, slot_max_link_width=4
    )
    yield "a card in a slot of four lanes", machine(small, gpus=[slow], pci=Pci(devices=[slot]))

    card = named["NVIDIA A100 80GB PCIe"]
    links = [NvLink(link=n, active=True, crc_errors=0, replay_errors=0) for n in range(12)]
    idle = [replace(link, active=False) for link in links]
    pair = [gpu(card, n, _USUAL, nvlinks=links) for n in range(2)]
    yield "two cards with NVLink bridges", machine(card, gpus=pair, count=2)
    four = [*pair, *(gpu(card, n, _USUAL, nvlinks=idle) for n in (2, 3))]
    yield "bridges on two of four cards", machine(card, gpus=four, count=4)

    board = named["NVIDIA A100-SXM4-40GB"]._replace(switch=False)
    yield "a board of four modules without NVSwitch", machine(board, count=4)
    divided = [
        gpu(board, 0, _USUAL, mig_enabled=True, mig_pending=True, nvlinks=idle,
            mig_instances=[MigInstance(gpu_instance=1, compute_instance=0, uuid="MIG-<uuid-1>")]),
        *(gpu(board, n, _USUAL) for n in range(1, 8)),
    ]  # fmt: skip
    switched = named["NVIDIA A100-SXM4-40GB"]
    yield (
        "MIG on one of eight",
        machine(
            switched, gpus=divided, count=8, cuda=h100.cuda(divided[1:], driver_api_version="13.0")
        ),
    )

    rack = named["NVIDIA B200"]._replace(name="NVIDIA GB200", memory=189471, device_id="2941")
    member = {"fabric_cluster": "7b1c0e6c-3c5c-4d0e-9a43-6a8d53b1b0aa", "fabric_clique": 32766}
    yield (
        "four of a rack's GPUs",
        machine(
            rack,
            gpus=[gpu(rack, n, _USUAL, **member) for n in range(4)],
            count=4,
            host=host(architecture="aarch64"),
            kernel=driver_side(rack, BRANCHES[_USUAL][0], 4, services=[]),
        ),
    )

    busy = named["NVIDIA H100 80GB HBM3"]
    working = {
        "utilization_percent": 100, "performance_state": "P0", "clock_sm_mhz": 1755,
        "power_draw_w": 692.0, "clock_event_reasons": ["sw_power_cap"], "temperature_c": 66,
        "memory_temperature_c": 84,
    }  # fmt: skip
    at_work = [gpu(busy, n, _USUAL, **working) for n in range(8)]
    yield "eight GPUs under full load", machine(busy, gpus=at_work, count=8)


def fleet() -> Iterator[tuple[str, Snapshot]]:
    """(name, Snapshot) of each machine."""
    yield from odd()
    for product in PRODUCTS:
        usual = min(_USUAL, product.until)
        eight = 8 if product.module and product.links > 6 else 4
        yield f"{product.name}, alone", machine(product, usual)
        yield f"{product.name}, {eight}", machine(product, usual, eight)
        yield f"{product.name}, container", contained(product, usual)
        if not product.consumer:
            yield f"{product.name}, one in a VM", single_in_vm(product, usual)
            yield f"{product.name}, Slurm job", slurm(product, usual, eight)
            yield f"{product.name}, pod", contained(product, usual, "kubernetes")
            yield f"{product.name}, node of Kubernetes", kubernetes_node(product, usual, eight)
        if product.module:
            yield f"{product.name}, {eight} in a VM", virtual(product, usual, eight)
        if product.vgpu:
            yield f"{product.vgpu}", vgpu(product, usual)
        if product.mig:
            yield f"{product.name}, MIG", mig(product, usual)
        if product.consumer or product.name.startswith("NVIDIA RTX"):
            yield f"{product.name}, WSL", wsl(product, usual)
        for branch in BRANCHES:
            if product.since <= branch <= product.until and branch != usual:
                yield f"{product.name}, driver {branch}", machine(product, branch, eight)
