"""The checks on what joins GPUs to each other, and on services beside them."""

from __future__ import annotations

from typing import Any

import pytest
from h100 import (
    ABSENT,
    ADDRESSES,
    NOT_SUPPORTED,
    VICTIM,
    cuda,
    gpu,
    kernel,
    machine,
    mig_instance,
    nvml,
    pci_device,
    with_fault,
)
from judged import assert_case, judged_alone, told

from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import GpuPair, GpuProcess, NvLink
from envcheck.facts.host import Host
from envcheck.facts.kernel import Service
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot


def all_gpus(**changes: Any) -> list[Any]:
    return [gpu(n, **changes) for n in range(8)]


def services(**running: bool) -> Any:
    return kernel(
        services=[
            Service(
                name="nvidia-" + name.replace("_", "-"),
                installed=True,
                running=up,
                version="535.54.03",
            )
            for name, up in running.items()
        ]
    )


def links(up: int, **errors: int) -> list[NvLink]:
    return [NvLink(link=n, active=n < up, **(errors if n == 5 else {})) for n in range(18)]


def pairs(**p2p: str) -> list[GpuPair]:
    """All pairs, the first with this status."""
    listed = [
        GpuPair(first=first, second=second, p2p_read="ok")
        for place, first in enumerate(ADDRESSES)
        for second in ADDRESSES[place + 1 :]
    ]
    return [GpuPair(first=ADDRESSES[0], second=ADDRESSES[1], **p2p), *listed[1:]]


def card(index: int, **changes: Any) -> Any:
    """An A100 in a slot, with three bridges to another one."""
    told = {"name": "NVIDIA A100 80GB PCIe", "nvlinks": links(12), **NO_FABRIC}
    return gpu(index, **{**told, **changes})


NO_SWITCH = Pci(devices=[pci_device(address) for address in ADDRESSES])
NO_FABRIC = {
    "fabric_state": NOT_SUPPORTED,
    "fabric_status": NOT_SUPPORTED,
    "fabric_health": NOT_SUPPORTED,
}
WITHOUT_LINKS = {"nvlinks": [NvLink(link=n, active=False) for n in range(12)]}

CASES: dict[str, tuple[str, Snapshot, str, str]] = {
    "not joined": (
        "GPU-012",
        machine(
            all_gpus(fabric_state="In Progress", fabric_status=ABSENT),
            cuda=cuda([], init_code=802),
            kernel=services(fabricmanager=False),
        ),
        "fail",
        "not running",
    ),
    "not joined, CUDA starts": (
        "GPU-012",
        with_fault(fabric_state="Not Started", fabric_status=ABSENT),
        "fail",
        "over PCIe alone",
    ),
    "not joined, one GPU that works": (
        "GPU-012",
        machine([gpu(0, fabric_state="In Progress")]),
        "warn",
        "CUDA starts on it",
    ),
    "joined with an error": (
        "GPU-012",
        with_fault(fabric_status="Unknown Error"),
        "fail",
        "Unknown Error",
    ),
    "unhealthy": ("GPU-012", with_fault(fabric_health="Unhealthy"), "fail", "unhealthy"),
    "limited": ("GPU-012", with_fault(fabric_health="Limited Capacity"), "warn", "limited"),
    "completed, health not told": (
        "GPU-012",
        with_fault(fabric_health=NOT_SUPPORTED),
        "pass",
        "completed",
    ),
    "state N/A": (
        "GPU-012",
        machine([gpu(0, fabric_state="N/A")]),
        "skipped",
        "not part of a fabric",
    ),
    "no manager, CUDA waits": (
        "GPU-012",
        machine(
            all_gpus(**NO_FABRIC),
            cuda=cuda([], init_code=802),
            kernel=services(fabricmanager=False),
        ),
        "fail",
        "fabric manager is not running",
    ),
    "no manager, CUDA not asked": (
        "GPU-012",
        machine(
            all_gpus(**NO_FABRIC),
            cuda=cuda([], init_code=ABSENT),
            kernel=services(fabricmanager=False),
        ),
        "warn",
        "fabric manager is not running",
    ),
    "no manager, CUDA starts": (
        "GPU-012",
        machine(all_gpus(**NO_FABRIC), kernel=services(fabricmanager=False)),
        "skipped",
        "not supported",
    ),
    "manager not looked for": (
        "GPU-012",
        machine(all_gpus(**NO_FABRIC), cuda=cuda([], init_code=802), kernel=services()),
        "skipped",
        "not supported",
    ),
    "no switch": (
        "GPU-012",
        machine(all_gpus(**NO_FABRIC), pci=NO_SWITCH, kernel=services(fabricmanager=False)),
        "skipped",
        "not supported",
    ),
    "a link is down": ("GPU-013", with_fault(nvlinks=links(17)), "warn", "links 17 are down"),
    "all links are down on a switch": (
        "GPU-013",
        with_fault(nvlinks=links(0)),
        "warn",
        "No NVLink is up, 18 on its peers",
    ),
    "no bridge on this GPU": (
        "GPU-013",
        machine([card(0), card(1), card(2, nvlinks=links(0))], pci=NO_SWITCH),
        "pass",
        "no NVLink in use",
    ),
    "one bridge on two cards, three on two others": (
        "GPU-013",
        machine(
            [card(0), card(1), card(2, nvlinks=links(4)), card(3, nvlinks=links(4))], pci=NO_SWITCH
        ),
        "pass",
        "4 links up",
    ),
    "a link of a bridge is down": (
        "GPU-013",
        machine([card(0), card(1, nvlinks=links(3))], pci=NO_SWITCH),
        "warn",
        "3 NVLinks are up, 12 on its peers",
    ),
    "all links are down, the switches are elsewhere": (
        "GPU-013",
        machine([gpu(n, nvlinks=links(0 if n == VICTIM else 18)) for n in range(8)], pci=NO_SWITCH),
        "warn",
        "No NVLink is up",
    ),
    "all links are down, a product that nobody knows, on a fabric": (
        "GPU-013",
        machine(
            [gpu(n, name="NVIDIA X1", nvlinks=links(0 if n == 1 else 18)) for n in range(4)],
            pci=NO_SWITCH,
        ),
        "warn",
        "No NVLink is up",
    ),
    "all have fewer than the product": (
        "GPU-013",
        machine(all_gpus(nvlinks=links(16))),
        "warn",
        "16 NVLinks are up, 18 on this product",
    ),
    "modules in a virtual machine without NVLink": (
        "GPU-013",
        machine(
            [gpu(n, name="NVIDIA A100-SXM4-40GB", nvlinks=links(0)) for n in range(4)],
            host=Host(hypervisor="kvm"),
            pci=NO_SWITCH,
        ),
        "warn",
        "The host decides this",
    ),
    "modules that know no NVLink at all": (
        "GPU-013",
        machine([gpu(n, nvlinks=NOT_SUPPORTED) for n in range(8)], pci=NO_SWITCH),
        "warn",
        "no link is listed",
    ),
    "switched off by the module": (
        "GPU-013",
        machine(
            all_gpus(nvlinks=links(0)), kernel=kernel(driver_parameters={"NvLinkDisable": "1"})
        ),
        "warn",
        "NVreg_NvLinkDisable",
    ),
    "a module given alone": (
        "GPU-013",
        machine([gpu(0, nvlinks=links(0))], host=Host(hypervisor="kvm")),
        "skipped",
        "no NVLink is in use",
    ),
    "half a board of direct links in a virtual machine": (
        "GPU-013",
        machine(
            [gpu(n, name="Tesla V100-SXM2-32GB", nvlinks=links(2)) for n in range(2)],
            host=Host(hypervisor="kvm"),
            pci=NO_SWITCH,
        ),
        "pass",
        "2 links up",
    ),
    "virtual GPUs": (
        "GPU-013",
        machine([gpu(n, virtualization="VGPU", nvlinks=links(0)) for n in range(2)]),
        "skipped",
        "its host's",
    ),
    "a driver too old to know NVLink": (
        "GPU-013",
        machine(
            [
                gpu(n, nvlinks=Unavailable(unavailable="not-supported", detail="NVML error 13"))
                for n in range(2)
            ]
        ),
        "skipped",
        "not supported",
    ),
    "another board has fewer links": (
        "GPU-013",
        machine([gpu(0), gpu(1, name="NVIDIA H100 NVL", nvlinks=links(12))]),
        "pass",
        "12 links up",
    ),
    "a noisy link": (
        "GPU-013",
        with_fault(nvlinks=links(18, crc_errors=54321)),
        "warn",
        "54321 crc errors",
    ),
    "a quiet link": ("GPU-013", with_fault(nvlinks=links(18, crc_errors=3)), "pass", "18 links up"),
    "nobody uses NVLink": (
        "GPU-013",
        machine(all_gpus(**WITHOUT_LINKS)),
        "warn",
        "No NVLink is up, 18 on this product",
    ),
    "cards without bridges": (
        "GPU-013",
        machine([card(n, nvlinks=links(0)) for n in range(8)], pci=NO_SWITCH),
        "skipped",
        "no NVLink",
    ),
    "MIG uses no NVLink": (
        "GPU-013",
        with_fault(mig_enabled=True, mig_instances=[mig_instance()], nvlinks=links(0)),
        "pass",
        "18 links up",
    ),
    "a pair is apart": (
        "GPU-019",
        machine(nvml=nvml(all_gpus(), pairs=pairs(p2p_read="chipset not supported"))),
        "warn",
        "1 of 28 pairs",
    ),
    "a pair tells nothing": (
        "GPU-019",
        machine(nvml=nvml(all_gpus(), pairs=pairs())),
        "pass",
        "27 pairs",
    ),
    "pairs without a switch": (
        "GPU-019",
        machine(nvml=nvml(all_gpus(), pairs=pairs(p2p_read="GPU not supported")), pci=NO_SWITCH),
        "skipped",
        "no NVSwitch",
    ),
    "a pair with MIG": (
        "GPU-019",
        machine(
            nvml=nvml(
                [gpu(0, mig_enabled=True), *all_gpus()[1:]], pairs=pairs(p2p_read="not supported")
            )
        ),
        "pass",
        "21 pairs",
    ),
    "pairs were not asked for": (
        "GPU-019",
        machine(nvml=nvml(all_gpus(), pairs=ABSENT)),
        "skipped",
        "topology",
    ),
    "a GPU by itself": ("GPU-019", machine([gpu(0)]), "skipped", "one GPU alone"),
    "persistence by the daemon": (
        "GPU-015",
        machine(all_gpus(persistence=False), kernel=services(persistenced=True)),
        "pass",
        "nvidia-persistenced is running",
    ),
    "persistence on Windows": (
        "GPU-015",
        machine([gpu(0, persistence=False, driver_model="TCC")]),
        "skipped",
        "Windows",
    ),
    "persistence beside a desktop": (
        "GPU-015",
        machine([gpu(0, persistence=False, processes=[GpuProcess(pid=1, kind="G")])]),
        "pass",
        "does not matter",
    ),
    "exclusive under MPS": (
        "GPU-014",
        machine([gpu(0, compute_mode="Exclusive_Process")], kernel=services(cuda_mps_control=True)),
        "pass",
        "Exclusive_Process",
    ),
    "MPS forgotten": (
        "GPU-016",
        machine(
            all_gpus(processes=[], memory_used_mib=500), kernel=services(cuda_mps_control=True)
        ),
        "warn",
        "EXCLUSIVE_PROCESS",
    ),
    "MPS in use": (
        "GPU-016",
        machine(kernel=services(cuda_mps_control=True)),
        "pass",
        "memory is free",
    ),
    "MPS meant": (
        "GPU-016",
        machine(
            all_gpus(processes=[], memory_used_mib=500, compute_mode="Exclusive_Process"),
            kernel=services(cuda_mps_control=True),
        ),
        "pass",
        "memory is free",
    ),
    "processes hidden in a container": (
        "GPU-016",
        machine([gpu(0, processes=[])], host=Host(container="docker")),
        "pass",
        "memory is free",
    ),
    "a link in a virtual machine": (
        "GPU-010",
        machine([gpu(0, pcie_width=8)], host=Host(hypervisor="kvm")),
        "skipped",
        "virtual machine",
    ),
    "a link without PCI facts": (
        "GPU-010",
        machine([gpu(0, pcie_width=8)], pci=Pci(devices=[])),
        "skipped",
        "what the PCIe slot can do",
    ),
    "a slot of an older generation": (
        "GPU-010",
        machine(
            [gpu(0, pcie_gen=4)],
            pci=Pci(devices=[pci_device(ADDRESSES[0], slot_max_link_gts=16.0)]),
        ),
        "pass",
        "as the slot has them",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert_case(*CASES[name])


def test_the_fabrics_remedy_names_the_drivers_version() -> None:
    stopped = machine(all_gpus(fabric_state="In Progress"), kernel=services(fabricmanager=False))
    result = judged_alone(stopped, "GPU-012")
    assert "nvidia-fabricmanager-535" in told(result)
    result = judged_alone(with_fault(fabric_state="In Progress"), "GPU-012")
    assert "systemctl restart nvidia-fabricmanager" in told(result)
    assert "a minute or two" in told(result)
    assert ADDRESSES[VICTIM] in result.findings[0].subject
