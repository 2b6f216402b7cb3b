"""The eight faults that other tools miss, put one at a time into a healthy 8 × H100 machine."""

from __future__ import annotations

import pytest
from h100 import ADDRESSES, VICTIM, lost_gpu, machine, with_fault
from judged import results

PCIE_X8 = {"pcie_width": 8}
FAULTS = {
    "GPU lost": (lost_gpu, "GPU-001", "fail"),
    "uncorrectable ECC": (
        lambda: with_fault(ecc_uncorrected_volatile=1, ecc_uncorrected_aggregate=1),
        "GPU-002",
        "fail",
    ),
    "remap pending": (
        lambda: with_fault(remap_pending=True, remap_uncorrectable=1),
        "GPU-003",
        "fail",
    ),
    "overheating": (
        lambda: with_fault(temperature_c=91, temperature_margin_c=-4),
        "GPU-007",
        "fail",
    ),
    "hardware thermal slowdown": (
        lambda: with_fault(
            clock_event_reasons=["hw_slowdown", "hw_thermal_slowdown"], clock_sm_mhz=345
        ),
        "GPU-008",
        "fail",
    ),
    "PCIe x16 to x8": (lambda: with_fault(**PCIE_X8), "GPU-010", "warn"),
    "MIG without instances": (
        lambda: with_fault(mig_enabled=True, mig_pending=True, mig_instances=[]),
        "GPU-011",
        "fail",
    ),
    "fabric unhealthy": (lambda: with_fault(fabric_health="Unhealthy"), "GPU-012", "fail"),
}


def test_the_healthy_machine_has_no_finding() -> None:
    found = results(machine())
    assert {code: r.outcome for code, r in found.items() if r.findings} == {}
    assert not [code for code, r in found.items() if r.outcome == "could-not-run"]
    passed = {code for code, r in found.items() if r.outcome == "pass"}
    # What an H100 outside of WSL and of vGPU does not have is skipped, and nothing else.
    assert set(found) - passed == {"DRV-009", "GPU-004", "GPU-017"}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_nothing_else_changes(name: str) -> None:
    build, code, level = FAULTS[name]
    healthy, broken = results(machine()), results(build())
    assert broken[code].outcome == level
    assert [f.level for f in broken[code].findings] == [level]
    finding = broken[code].findings[0]
    assert ADDRESSES[VICTIM] in finding.subject
    assert finding.evidence and finding.remedy is not None and finding.remedy.commands
    for other in set(broken) - {code}:
        was, now = healthy[other], broken[other]
        assert now.outcome == was.outcome or now.consequence_of == code, (other, now)
        assert not now.findings or now.consequence_of == code


def test_a_lost_gpu_explains_nvidia_smis_exit_code() -> None:
    result = results(lost_gpu())["DRV-003"]
    assert result.outcome == "skipped" and result.consequence_of == "GPU-001"
