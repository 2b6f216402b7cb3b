"""GPUs that are unlike the others of their name, or less than their product."""

from __future__ import annotations

from typing import Any

import pytest
from h100 import (
    ABSENT,
    ADDRESSES,
    COUNT,
    NOT_SUPPORTED,
    VICTIM,
    gpu,
    machine,
    mig_instance,
    pci_device,
)
from judged import assert_case, judged_alone, results, told

from envcheck.data.products import product
from envcheck.facts.gpu import Gpu
from envcheck.facts.host import Host
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot

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
    return machine(
        [gpu(n, **(alike | changes if n == victim else alike)) for n in range(count)],
    )


def each(
    *values: dict[str, Any], common: dict[str, Any] | None = None, **sections: Any
) -> Snapshot:
    alike = {**EQUAL, **(common or {})}
    return machine([gpu(n, **(alike | changes)) for n, changes in enumerate(values)], **sections)


CASES: dict[str, tuple[str, Snapshot, str, str]] = {
    "half the memory": ("GPU-021", odd(memory_total_mib=40960), "fail", "81559 MiB"),
    "a little less memory": ("GPU-021", odd(memory_total_mib=81251), "pass", "alike"),
    "a small BAR1": ("GPU-021", odd(bar1_total_mib=256), "warn", "BAR1 256 MiB"),
    "GeForce of two sizes": (
        "GPU-021",
        odd(3, GEFORCE, memory_total_mib=12288),
        "pass",
        "many makers",
    ),
    "two of unequal memory": (
        "GPU-021",
        each({}, {"memory_total_mib": 40960}),
        "warn",
        "0000:1b:00.0: memory 81559 MiB",
    ),
    "one alone": ("GPU-021", machine([gpu(0)]), "skipped", "no two GPUs"),
    "other names": (
        "GPU-021",
        each({}, {"name": "NVIDIA A100-SXM4-40GB", "memory_total_mib": 40960}),
        "skipped",
        "no two GPUs",
    ),
    "virtual GPUs": (
        "GPU-021",
        each(
            {"virtualization": "VGPU"},
            {"virtualization": "VGPU", "memory_total_mib": 8192},
        ),
        "skipped",
        "no two GPUs",
    ),
    "memory not told": (
        "GPU-021",
        odd(memory_total_mib=NOT_SUPPORTED, bar1_total_mib=NOT_SUPPORTED),
        "pass",
        "7 ×",
    ),
    "ECC off on one": ("GPU-022", odd(ecc_enabled=False, ecc_pending=False), "warn", "-e 1"),
    "ECC on on one": (
        "GPU-022",
        odd(
            common={"ecc_enabled": False, "ecc_pending": False}, ecc_enabled=True, ecc_pending=True
        ),
        "warn",
        "0000:df:00.0 -e 1",
    ),
    "ECC about to change": ("GPU-022", odd(ecc_enabled=False), "pass", "pending"),
    "ECC off on all": (
        "GPU-022",
        odd(common={"ecc_enabled": False, "ecc_pending": False}),
        "warn",
        "0000:df:00.0 -e 1",
    ),
    "ECC not told": ("GPU-022", odd(common={"ecc_enabled": NOT_SUPPORTED}), "skipped", ""),
    "ECC off on a whole workstation": (
        "GPU-022",
        odd(common={"name": "NVIDIA RTX A6000", "ecc_enabled": False, "ecc_pending": False}),
        "pass",
        "ECC is off",
    ),
    "another VBIOS": ("GPU-023", odd(vbios="96.00.30.00.01"), "warn", "96.00.30.00.01"),
    "another InfoROM": ("GPU-023", odd(inforom="G520.0200.00.01"), "warn", "InfoROM"),
    "GeForce of two makers": (
        "GPU-023",
        odd(4, GEFORCE, vbios="94.02.42.00.A9"),
        "pass",
        "many makers",
    ),
    "a lower default": (
        "GPU-024",
        odd(power_default_limit_w=500.0, power_limit_w=500.0),
        "warn",
        "default power limit 500 W (its peers: 700 W)",
    ),
    "a lower highest clock": ("GPU-024", odd(clock_sm_max_mhz=1755), "warn", "1755 MHz"),
    "limits nearly alike": ("GPU-024", odd(power_limit_w=699.6), "pass", "alike"),
    "a limit set on all": ("GPU-024", odd(common={"power_limit_w": 500.0}), "pass", "alike"),
    "GeForce with other limits": (
        "GPU-024",
        odd(4, GEFORCE, power_default_limit_w=370.0),
        "pass",
        "many makers",
    ),
    "another clique": ("GPU-025", odd(fabric_clique=3), "warn", "clique 3 (its peers: 0)"),
    "another cluster": ("GPU-025", odd(fabric_cluster="<uuid-91>"), "warn", "<uuid-91>"),
    "two cliques": (
        "GPU-025",
        each({}, {}, {"fabric_clique": 1}, {"fabric_clique": 1}),
        "warn",
        "GPUs of one name differ",
    ),
    "no fabric": (
        "GPU-025",
        odd(common={"fabric_clique": NOT_SUPPORTED, "fabric_cluster": NOT_SUPPORTED}),
        "skipped",
        "",
    ),
    "all have half the memory": (
        "GPU-026",
        odd(common={"memory_total_mib": 40960}),
        "fail",
        "its product 80 GB",
    ),
    "all have a low default": (
        "GPU-026",
        odd(common={"power_default_limit_w": 350.0}),
        "warn",
        "350 W, its product's 700 W",
    ),
    "a cloud's lower default": (
        "GPU-026",
        odd(common={"power_default_limit_w": 560.0}),
        "pass",
        "the product's",
    ),
    "ECC takes memory": (
        "GPU-026",
        odd(
            common={
                "name": "NVIDIA A10G",
                "memory_total_mib": 23028,
                "power_default_limit_w": 300.0,
            }
        ),
        "pass",
        "the product's",
    ),
    "a product that nobody knows": (
        "GPU-026",
        odd(common={"name": "NVIDIA X1"}),
        "skipped",
        "not known",
    ),
    "a part of a product": (
        "GPU-026",
        odd(common={"virtualization": "VGPU", "memory_total_mib": 8192}),
        "skipped",
        "virtual GPU",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert_case(*CASES[name])


def test_the_odd_one_is_the_subject() -> None:
    for code, changes in {
        "GPU-021": {"memory_total_mib": 40960},
        "GPU-022": {"ecc_enabled": False, "ecc_pending": False},
        "GPU-023": {"vbios": "1"},
        "GPU-024": {"power_max_limit_w": 500.0},
        "GPU-025": {"fabric_clique": 9},
    }.items():
        (finding,) = judged_alone(odd(**changes), code).findings
        assert [subject.address for subject in finding.subjects] == [ADDRESSES[VICTIM]]


def test_one_cause_is_told_once() -> None:
    low = results(odd(power_limit_w=500.0))
    assert low["GPU-009"].outcome == "warn"
    assert low["GPU-024"].consequence_of == "GPU-009"
    half = results(odd(memory_total_mib=40960))
    assert half["GPU-021"].outcome == "fail"
    assert half["GPU-026"].consequence_of == "GPU-021"


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
        bad = {code: told(r) for code, r in found.items() if r.findings and code in NEW}
        assert not bad


NEW = {f"GPU-0{number}" for number in range(21, 27)} | {"GPU-010", "GPU-013", "PCI-008"}


def pci(*slots: int | None, switches: int = 0, **changes: Any) -> Pci:
    """The devices of the first GPUs, in slots of so many lanes."""
    return Pci(
        devices=[
            pci_device(
                address,
                **({} if lanes is None else {"slot_max_link_width": lanes, "link_width": lanes}),
                **changes,
            )
            for address, lanes in zip(ADDRESSES, slots, strict=False)
        ]
    )


GUEST = Host(hypervisor="kvm")
X1 = {"pcie_width": 1}
IDLE = {"utilization_percent": 0, "clock_event_reasons": ["gpu_idle"], "performance_state": "P8"}
LINKS: dict[str, tuple[str, Snapshot, str, str]] = {
    "x8 beside x16": ("PCI-008", odd(pcie_width=8), "warn", "lanes 8 (its peers: 16)"),
    "x8 beside x16, in a guest": (
        "PCI-008",
        each({}, {}, {}, {"pcie_width": 8}, host=GUEST, pci=Pci(devices=[])),
        "warn",
        "on its host",
    ),
    "a lower generation at most": ("PCI-008", odd(pcie_gen_max=4, pcie_gen=4), "warn", "at most 4"),
    "a lower generation under load": ("PCI-008", odd(pcie_gen=3), "warn", "under load 3"),
    "asleep beside those at work": ("PCI-008", odd(pcie_gen=1, **IDLE), "pass", "equal"),
    "slots of two kinds": (
        "PCI-008",
        each({}, {}, {"pcie_width": 8}, {"pcie_width": 8}, pci=pci(16, 16, 8, 8)),
        "pass",
        "as their slots are",
    ),
    "a desktop's second slot": (
        "PCI-008",
        each({}, {"pcie_width": 8}, common=GEFORCE, pci=pci(16, 8)),
        "pass",
        "as their slots are",
    ),
    "a desktop's third slot, in a document": (
        "PCI-008",
        each({}, {}, {"pcie_width": 4}, common=GEFORCE, pci=None),
        "pass",
        "as their slots are",
    ),
    "a server's slot that was split": (
        "PCI-008",
        each({}, {}, {}, {"pcie_width": 8}, pci=pci(16, 16, 16, 8)),
        "warn",
        "lanes 8",
    ),
    "one of two boards": (
        "PCI-008",
        each({}, {"pcie_width": 8}, pci=pci(16, 16)),
        "warn",
        "0000:43:00.0",
    ),
    "x1 of a slot with 16": ("GPU-010", odd(**X1), "fail", "x1 of x16"),
    "x4 of a slot with 16": ("GPU-010", odd(pcie_width=4), "fail", "x4 of x16"),
    "x8 of a slot with 16": ("GPU-010", odd(pcie_width=8), "warn", "x8 of x16"),
    "x1 of a riser with 1, idle": (
        "GPU-010",
        each({}, X1 | IDLE, common=GEFORCE, pci=pci(16, 1)),
        "warn",
        "without a riser of one lane",
    ),
    "x4 of a slot with 4": (
        "GPU-010",
        each({"pcie_width": 4}, common=GEFORCE, pci=pci(4)),
        "pass",
        "as the slot has them",
    ),
    "x1, the slot is not known": ("GPU-010", each(X1, pci=None), "warn", "x1 of x16"),
    "x1 in a guest": ("GPU-010", each(X1, host=GUEST), "warn", "on its host"),
    "x8 in a guest": ("GPU-010", each({"pcie_width": 8}, host=GUEST), "skipped", "virtual machine"),
    "generation 1 in a guest": (
        "GPU-010",
        each({"pcie_gen": 1}, host=GUEST),
        "warn",
        "generation 1 of 5",
    ),
    "a made-up port": (
        "GPU-010",
        each({"pcie_gen": 1, "pcie_width": 1}, host=GUEST),
        "skipped",
        "made-up",
    ),
    "generation 1, the slot is not known": (
        "GPU-010",
        each({"pcie_gen": 1}, pci=None),
        "warn",
        "generation 1 of 5",
    ),
    "generation 1 for the slot": (
        "GPU-010",
        each({"pcie_gen": 1, "pcie_gen_max": 1}),
        "warn",
        "generation 1 of 5",
    ),
    "generation 3 of the slot": (
        "GPU-010",
        each({"pcie_gen": 3, "pcie_gen_max": 3}),
        "pass",
        "as the card has them",
    ),
    "asleep at generation 1": ("GPU-010", each({"pcie_gen": 1} | IDLE), "skipped", "idle"),
    "a laptop's four lanes": (
        "GPU-010",
        each(
            {"pcie_width": 4, "pcie_width_max": 4},
            common=GEFORCE,
            pci=pci(4, max_link_width=4),
        ),
        "pass",
        "x4",
    ),
    "a small card's eight lanes": (
        "GPU-010",
        each({"pcie_width": 8, "pcie_width_max": 8}, common=GEFORCE, pci=pci(16, max_link_width=8)),
        "pass",
        "x8",
    ),
}


@pytest.mark.parametrize("name", LINKS)
def test_link(name: str) -> None:
    code, snapshot, outcome, words = LINKS[name]
    result = results(snapshot, ["gpu", "pci"])[code]
    alone = result if result.consequence_of == "" else None
    if alone is None:  # explained by another check on the same GPU
        assert outcome in ("warn", "fail") and result.findings
        assert words in told(result)
        return
    assert result.outcome == outcome, told(result)
    assert words in told(result), told(result)


def test_a_broken_link_is_told_once() -> None:
    for width, level in ((1, "fail"), (8, "warn")):
        gpus = [
            gpu(n, **(EQUAL | ({"pcie_width": width} if n == VICTIM else {}))) for n in range(COUNT)
        ]
        devices = [
            pci_device(address, link_width=width if n == VICTIM else 16)
            for n, address in enumerate(ADDRESSES)
        ]
        bare = Host(hypervisor=ABSENT)
        found = results(machine(gpus, pci=Pci(devices=devices), host=bare), ["gpu", "pci"])
        assert found["PCI-005"].outcome == level
        assert found["GPU-010"].consequence_of == found["PCI-008"].consequence_of == "PCI-005"


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
