"""The checks on what joins GPUs to each other, and on services beside them."""

from __future__ import annotations

from typing import Any

import pytest
from h100 import ADDRESSES, NOT_SUPPORTED, VICTIM, gpu, kernel, machine, pci_device, with_fault
from judged import assert_case, full_text, judged_alone

from envcheck.collector.nvml import labels
from envcheck.facts.gpu import NvLink
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
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert_case(*CASES[name])


def test_the_fabrics_remedy_names_the_drivers_version() -> None:
    stopped = machine(all_gpus(fabric_state="In Progress"), kernel=services(fabricmanager=False))
    result = judged_alone(stopped, "GPU-012")
    assert "nvidia-fabricmanager-535" in full_text(result)
    result = judged_alone(with_fault(fabric_state="In Progress"), "GPU-012")
    assert "systemctl restart nvidia-fabricmanager" in full_text(result)
    assert "a minute or two" in full_text(result) and "multi-node" not in full_text(result)
    assert ADDRESSES[VICTIM] in result.findings[0].subject


def health(*faults: str) -> Snapshot:
    return with_fault(fabric_health="Unhealthy", fabric_faults=list(faults))


FABRIC_FAULTS = [
    name for _shift, _width, _healthy, names in labels.FABRIC_HEALTH_MASK for name in names.values()
]


@pytest.mark.parametrize("fault", [*FABRIC_FAULTS, "unknown_9"])
def test_each_fault_of_the_fabric_is_one_finding(fault: str) -> None:
    (finding,) = judged_alone(health(fault), "GPU-012").findings
    assert ADDRESSES[VICTIM] in finding.subject and fault.replace("_", " ") in finding.message
    assert finding.remedy is not None and finding.remedy.commands
    assert finding.level == (
        "warn" if "recovery" in fault or "degraded" in fault else finding.level
    )
