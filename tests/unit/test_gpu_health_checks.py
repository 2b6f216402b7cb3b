"""The checks on what GPUs count over time, on their clocks, on-chip memory, firmware and fabric, fault by"
" fault."""

from __future__ import annotations

from typing import Any

import pytest
from h100 import (
    ADDRESSES,
    VICTIM,
    with_fault,
)
from judged import assert_case, judged_alone

from envcheck.collector.nvml import labels
from envcheck.facts.snapshot import Snapshot

STUCK: dict[str, Any] = {
    "clock_event_reasons": [],
    "performance_state": "P8",
    "clock_sm_mhz": 345,
    "utilization_percent": 100,
}

# (code, the GPU's facts, outcome, words that the reader must see)
CASES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "past heat": ("GPU-027", {"slowdown_hw_thermal_us": 12_345_678}, "warn", "For 12.3 s"),
    "past power brake": ("GPU-027", {"slowdown_hw_power_brake_us": 40}, "warn", "Power Supply"),
    "past heat in software": (
        "GPU-027",
        {"slowdown_sw_thermal_us": 7_200_000_000},
        "warn",
        "2.0 h",
    ),
    "busy in P8": (
        "GPU-028",
        STUCK,
        "warn",
        "in performance state P8 and its clock is at 345 of 1980 MHz",
    ),
    "set low": (
        "GPU-029",
        {"clock_set_mhz": 345, "clock_set_default_mhz": 1980},
        "warn",
        f"sudo nvidia-smi -i {ADDRESSES[VICTIM]} -rac",
    ),
    "memory at 105 without a limit of its own": (
        "GPU-030",
        {"memory_temperature_c": 105},
        "fail",
        "from 95 °C on",
    ),
    "parity error": (
        "GPU-031",
        {"sram_parity_volatile": 1},
        "fail",
        "1 uncorrectable parity error in",
    ),
    "old parity errors": (
        "GPU-031",
        {"sram_parity_aggregate": 3},
        "warn",
        "more than 4 in one bank",
    ),
    "corrupt InfoROM": ("GPU-032", {"inforom_valid": False}, "fail", "corrupt"),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    code, changes, outcome, words = CASES[name]
    assert_case(code, with_fault(**changes), outcome, words)


def fabric(fault: str, **changes: Any) -> Snapshot:
    return with_fault(fabric_health="Unhealthy", fabric_faults=[fault], **changes)


FABRIC_FAULTS = [
    name for _shift, _width, _healthy, names in labels.FABRIC_HEALTH_MASK for name in names.values()
]


@pytest.mark.parametrize("fault", FABRIC_FAULTS)
def test_each_fault_of_the_fabric_is_told_in_its_own_words(fault: str) -> None:
    result = judged_alone(fabric(fault), "GPU-012")
    (finding,) = result.findings
    assert ADDRESSES[VICTIM] in finding.subject
    assert finding.headline not in ("", "has not joined the NVSwitch fabric")
    assert finding.remedy is not None and finding.remedy.commands
    assert any(item.value == fault for item in finding.evidence)


@pytest.mark.parametrize(
    ("faults", "count"),
    [
        (["unknown_9"], 1),
    ],
)
def test_several_faults_of_the_fabric(faults: list[str], count: int) -> None:
    found = judged_alone(with_fault(fabric_health="Unhealthy", fabric_faults=faults), "GPU-012")
    assert len(found.findings) == count and found.outcome == "fail"
