"""The checks on what joins GPUs to each other, and on GPUs that are unlike the others of their name."""

from __future__ import annotations

from typing import Any

import pytest
from h100 import (
    ADDRESSES,
    COUNT,
    NOT_SUPPORTED,
    VICTIM,
    gpu,
    kernel,
    machine,
    mig_instance,
    pci_device,
    with_fault,
)
from judged import assert_case, full_text, judged_alone, results

from envcheck.collector.nvml import labels
from envcheck.data.products import product
from envcheck.facts.gpu import Gpu, NvLink
from envcheck.facts.kernel import Service
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot


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


def card(index: int, **changes: Any) -> Any:
    """An A100 in a slot, with three bridges to another one."""
    values = {"name": "NVIDIA A100 80GB PCIe", "nvlinks": links(12), **NO_FABRIC}
    return gpu(index, **{**values, **changes})


NO_SWITCH = Pci(devices=[pci_device(address) for address in ADDRESSES])
NO_FABRIC = {
    "fabric_state": NOT_SUPPORTED,
    "fabric_status": NOT_SUPPORTED,
    "fabric_health": NOT_SUPPORTED,
}


# What GPUs of one name share, as a document or NVML tells it.
EQUAL = {
    "vbios": "96.00.A5.00.01",
    "inforom": "G520.0200.00.05",
    "board_part_number": "692-2G520-0200-000",
    "power_max_limit_w": 700.0,
    "clock_memory_max_mhz": 2619,
    "pcie_gen_max_device": 5,
    "fabric_clique": 0,
    "fabric_cluster": "<uuid-90>",
}
GEFORCE = {
    "name": "NVIDIA GeForce RTX 3090",
    "brand": "GeForce",
    "nvlinks": NOT_SUPPORTED,
    "fabric_state": NOT_SUPPORTED,
    "memory_total_mib": 24576,
    "power_default_limit_w": 350.0,
    "power_limit_w": 350.0,
    "virtualization": "None",
}


def odd(count: int = COUNT, common: dict[str, Any] | None = None, **changes: Any) -> Snapshot:
    """A machine of which one GPU has these facts, and the others do not."""
    alike = {**EQUAL, **(common or {})}
    victim = min(VICTIM, count - 1)
    return machine([gpu(n, **(alike | changes if n == victim else alike)) for n in range(count)])


def each(
    *values: dict[str, Any], common: dict[str, Any] | None = None, **sections: Any
) -> Snapshot:
    alike = {**EQUAL, **(common or {})}
    return machine([gpu(n, **(alike | changes)) for n, changes in enumerate(values)], **sections)


CASES: dict[str, tuple[str, Snapshot, str, str]] = {
    "joined with an error": (
        "GPU-012",
        with_fault(fabric_status="Unknown Error"),
        "fail",
        "Unknown Error",
    ),
    "no fabric": ("GPU-012", with_fault(fabric_state="N/A"), "pass", "not part of a fabric"),
    "limited": ("GPU-012", with_fault(fabric_health="Limited Capacity"), "warn", "limited"),
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
    "a noisy link": (
        "GPU-013",
        with_fault(nvlinks=links(18, crc_errors=54321)),
        "warn",
        "54321 crc errors",
    ),
    "half the memory": ("GPU-021", odd(memory_total_mib=40960), "fail", "81559 MiB"),
    "a small BAR1": ("GPU-021", odd(bar1_total_mib=256), "warn", "BAR1 256 MiB"),
    "ECC off on one": ("GPU-022", odd(ecc_enabled=False, ecc_pending=False), "warn", "-e 1"),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert_case(*CASES[name])


def test_the_fabrics_remedy_names_the_drivers_version() -> None:
    gpus = [gpu(n, fabric_state="In Progress") for n in range(8)]
    stopped = machine(gpus, kernel=services(fabricmanager=False))
    result = judged_alone(stopped, "GPU-012")
    assert "nvidia-fabricmanager-535" in full_text(result)
    result = judged_alone(with_fault(fabric_state="In Progress"), "GPU-012")
    assert "systemctl restart nvidia-fabricmanager" in full_text(result)
    assert "a minute or two" in full_text(result) and "multi-node" not in full_text(result)
    assert ADDRESSES[VICTIM] in result.findings[0].subject


FABRIC_FAULTS = [
    name for _shift, _width, _healthy, names in labels.FABRIC_HEALTH_MASK for name in names.values()
]


@pytest.mark.parametrize("fault", [*FABRIC_FAULTS, "unknown_9"])
def test_each_fault_of_the_fabric_is_one_finding(fault: str) -> None:
    unhealthy = with_fault(fabric_health="Unhealthy", fabric_faults=[fault])
    (finding,) = judged_alone(unhealthy, "GPU-012").findings
    assert ADDRESSES[VICTIM] in finding.subject and fault.replace("_", " ") in finding.message
    assert finding.remedy is not None and finding.remedy.commands
    assert finding.level == (
        "warn" if "recovery" in fault or "degraded" in fault else finding.level
    )


def test_machines_whose_gpus_are_alike_pass() -> None:
    mig = {"mig_enabled": True, "mig_pending": True, "mig_instances": [mig_instance()]}
    healthy = (
        odd(),
        odd(**mig),
        odd(common={"virtualization": "Pass-Through"}),
        odd(2, GEFORCE),
        odd(2, GEFORCE, vbios="94.02.42.00.A9", power_max_limit_w=400.0, clock_sm_max_mhz=2130),
        machine([Gpu(name="NVIDIA H100 80GB HBM3"), Gpu(name="NVIDIA H100 80GB HBM3")]),
    )
    for snapshot in healthy:
        found = results(snapshot, ["gpu", "pci"])
        bad = {code: full_text(r) for code, r in found.items() if r.findings and code in NEW}
        assert not bad


NEW = {f"GPU-0{number}" for number in range(21, 26)} | {"GPU-010", "GPU-013", "PCI-008"}


def pci(*slots: int) -> Pci:
    """The devices of the first GPUs, in slots of so many lanes."""
    return Pci(
        devices=[
            pci_device(address, slot_max_link_width=lanes, link_width=lanes)
            for address, lanes in zip(ADDRESSES, slots, strict=False)
        ]
    )


X1 = {"pcie_width": 1}
IDLE = {"utilization_percent": 0, "clock_event_reasons": ["gpu_idle"], "performance_state": "P8"}


def test_a_riser_of_one_lane_is_found_on_an_idle_gpu() -> None:
    found = each({}, X1 | IDLE, common=GEFORCE, pci=pci(16, 1))
    assert "without a riser of one lane" in full_text(results(found, ["gpu", "pci"])["GPU-010"])


def test_every_product_has_a_source_and_is_found_by_its_name() -> None:
    for name, links in {
        "Tesla V100-SXM2-16GB": 6,
        "NVIDIA A100-SXM4-80GB": 12,
        "NVIDIA H100 80GB HBM3": 18,
        "NVIDIA H200": 18,
        "NVIDIA B200": 18,
        "NVIDIA GB200": 18,
    }.items():
        found = product(name)
        assert found is not None and (found.board, found.nvlinks) == ("module", links)
    for name in ("NVIDIA H200 NVL", "NVIDIA GeForce RTX 4090", "GRID A100X-40C", "NVIDIA A10"):
        assert product(name) is None
