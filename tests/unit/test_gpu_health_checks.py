"""The checks on what GPUs count over time, on their clocks, on-chip memory, firmware and fabric, fault by"
" fault."""

from __future__ import annotations

from typing import Any

import pytest
from build import document
from h100 import (
    ADDRESSES,
    NOT_SUPPORTED,
    VICTIM,
    gpu,
    kernel,
    machine,
    smi,
    with_fault,
)
from judged import assert_case, judged_alone, results, told
from msgspec.structs import replace

from envcheck.checks.gpu.clocks import duration
from envcheck.collector.nvml import labels
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import Gpu, GpuProcess, LostGpu, NvidiaSmi
from envcheck.facts.snapshot import SCHEMA, Snapshot

CORRUPT = Unavailable(unavailable="error", detail="Corrupted infoROM (NVML error 14)")
BROKEN = Unavailable(unavailable="error", detail="Unknown Error (NVML error 999)")
NO_POWER = Unavailable(unavailable="error", detail="Insufficient External Power")
STUCK: dict[str, Any] = {
    "clock_event_reasons": [],
    "performance_state": "P8",
    "clock_sm_mhz": 345,
    "utilization_percent": 100,
}
NOT_TOLD = {
    "gsp_firmware": NOT_SUPPORTED,
    "gsp_enabled": NOT_SUPPORTED,
    "gsp_default": NOT_SUPPORTED,
}
A100: dict[str, Any] = {
    "name": "NVIDIA A100-SXM4-80GB",
    "architecture": "Ampere",
    "compute_capability": "8.0",
}

# (code, the GPU's facts, outcome, words that the reader must see)
CASES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "past heat": ("GPU-027", {"slowdown_hw_thermal_us": 12_345_678}, "warn", "for 12.3 s"),
    "past power brake": ("GPU-027", {"slowdown_hw_power_brake_us": 40}, "warn", "Power Supply"),
    "past heat in software": (
        "GPU-027",
        {"slowdown_sw_thermal_us": 7_200_000_000},
        "warn",
        "2.0 h",
    ),
    "a little heat in software": (
        "GPU-027",
        {"slowdown_sw_thermal_us": 900_000},
        "pass",
        "no slowdown",
    ),
    "the power cap is normal": (
        "GPU-027",
        {"slowdown_sw_power_cap_us": 10**12},
        "pass",
        "no slowdown",
    ),
    "slowed down now": (
        "GPU-027",
        {"slowdown_hw_thermal_us": 9, "clock_event_reasons": ["hw_thermal_slowdown"]},
        "pass",
        "no slowdown",
    ),
    "no counters": (
        "GPU-027",
        {
            "slowdown_hw_thermal_us": NOT_SUPPORTED,
            "slowdown_hw_power_brake_us": NOT_SUPPORTED,
            "slowdown_sw_thermal_us": NOT_SUPPORTED,
        },
        "pass",
        "not supported",
    ),
    "busy in P8": (
        "GPU-028",
        STUCK,
        "warn",
        "in performance state P8 and its clock is at 345 of 1980 MHz",
    ),
    "busy and slow in P0": ("GPU-028", STUCK | {"performance_state": "P0"}, "warn", "-rgc"),
    "busy with slow memory": (
        "GPU-028",
        STUCK
        | {
            "performance_state": "P2",
            "clock_sm_mhz": 1900,
            "clock_memory_mhz": 405,
            "clock_memory_max_mhz": 2619,
        },
        "warn",
        "its memory's clock is at 405 of 2619 MHz",
    ),
    "busy and fast": (
        "GPU-028",
        STUCK | {"performance_state": "P0", "clock_sm_mhz": 1980},
        "pass",
        "busy",
    ),
    "idle and slow": ("GPU-028", STUCK | {"utilization_percent": 3}, "pass", "not busy"),
    "busy drawing": (
        "GPU-028",
        STUCK | {"processes": [GpuProcess(pid=1, kind="G")]},
        "pass",
        "not busy",
    ),
    "scrubbed by the driver": (
        "GPU-028",
        STUCK | {"processes": [], "persistence": False},
        "pass",
        "not busy",
    ),
    "busy with what a container hides": ("GPU-028", STUCK | {"processes": []}, "warn", "P8"),
    "slow with a reason": (
        "GPU-028",
        STUCK | {"clock_event_reasons": ["hw_power_brake_slowdown"]},
        "pass",
        "says what holds",
    ),
    "capped at the cap": (
        "GPU-028",
        STUCK | {"clock_event_reasons": ["sw_power_cap"], "power_draw_w": 690.0},
        "pass",
        "says what holds",
    ),
    "MIG tells no use": (
        "GPU-028",
        STUCK | {"utilization_percent": NOT_SUPPORTED},
        "pass",
        "not supported",
    ),
    "set low": (
        "GPU-029",
        {"clock_set_mhz": 345, "clock_set_default_mhz": 1980},
        "warn",
        f"sudo nvidia-smi -i {ADDRESSES[VICTIM]} -rac",
    ),
    "set low, no default": (
        "GPU-029",
        {"clock_set_mhz": 345, "clock_set_default_mhz": NOT_SUPPORTED},
        "warn",
        "its maximum is 1980",
    ),
    "set low in memory": (
        "GPU-029",
        {"clock_memory_set_mhz": 405, "clock_memory_set_default_mhz": 2619},
        "warn",
        "-rmc",
    ),
    "set to a default below the maximum": (
        "GPU-029",
        {"clock_set_mhz": 585, "clock_set_default_mhz": 585, "clock_sm_max_mhz": 1590},
        "pass",
        "no clock is set low",
    ),
    "set high": (
        "GPU-029",
        {"clock_set_mhz": 1980, "clock_set_default_mhz": 1275},
        "pass",
        "no clock",
    ),
    "locked low": (
        "GPU-029",
        {"clock_event_reasons": ["applications_clocks_setting"], "clock_sm_mhz": 345},
        "warn",
        "-rgc",
    ),
    "memory locked low": (
        "GPU-029",
        {
            "clock_event_reasons": ["applications_clocks_setting"],
            "clock_memory_mhz": 405,
            "clock_memory_max_mhz": 2619,
        },
        "warn",
        "-rmc",
    ),
    "locked, at rest": (
        "GPU-029",
        {"clock_event_reasons": ["gpu_idle", "applications_clocks_setting"], "clock_sm_mhz": 345},
        "pass",
        "no clock",
    ),
    "locked, near the maximum": (
        "GPU-029",
        {"clock_event_reasons": ["applications_clocks_setting"], "clock_sm_mhz": 1755},
        "pass",
        "no clock",
    ),
    "at a low default": (
        "GPU-029",
        {
            "clock_event_reasons": ["applications_clocks_setting"],
            "clock_sm_mhz": 585,
            "clock_set_default_mhz": 585,
        },
        "pass",
        "no clock",
    ),
    "memory at 105 without a limit of its own": (
        "GPU-030",
        {"memory_temperature_c": 105},
        "fail",
        "from 95 °C on",
    ),
    "memory at its own limit": (
        "GPU-030",
        A100 | {"memory_temperature_c": 95, "memory_temperature_max_c": 95},
        "fail",
        "95 °C",
    ),
    "memory near its own limit": (
        "GPU-030",
        {"memory_temperature_c": 91, "memory_temperature_max_c": 95},
        "warn",
        "4 degrees below",
    ),
    "memory whose own limit is higher": (
        "GPU-030",
        {"memory_temperature_c": 99, "memory_temperature_max_c": 105},
        "pass",
        "below 105",
    ),
    "memory of an unknown kind": (
        "GPU-030",
        {
            "memory_temperature_c": 104,
            "memory_temperature_max_c": NOT_SUPPORTED,
            "architecture": "Ada Lovelace",
        },
        "pass",
        "not known",
    ),
    "memory without a sensor": (
        "GPU-030",
        {"memory_temperature_c": NOT_SUPPORTED},
        "pass",
        "not supported",
    ),
    "parity error": (
        "GPU-031",
        {"sram_parity_volatile": 1},
        "fail",
        "1 uncorrectable parity error in",
    ),
    "SEC-DED errors": (
        "GPU-031",
        {"sram_secded_volatile": 2},
        "fail",
        "2 uncorrectable SEC-DED errors",
    ),
    "old parity errors": (
        "GPU-031",
        {"sram_parity_aggregate": 3},
        "warn",
        "more than 4 in one bank",
    ),
    "old SEC-DED errors": (
        "GPU-031",
        {"sram_secded_aggregate": 1},
        "warn",
        "more than 2 in one bank",
    ),
    "one SRAM counter alone": (
        "GPU-031",
        {
            "sram_parity_volatile": 1,
            "sram_parity_aggregate": NOT_SUPPORTED,
            "sram_secded_volatile": NOT_SUPPORTED,
            "sram_secded_aggregate": NOT_SUPPORTED,
        },
        "fail",
        "parity",
    ),
    "only memory on the board": (
        "GPU-031",
        {"ecc_uncorrected_volatile": 3},
        "pass",
        "no uncorrectable",
    ),
    "SRAM errors are not memory's": (
        "GPU-002",
        {"sram_secded_volatile": 2, "ecc_uncorrected_volatile": 2},
        "pass",
        "no uncorrectable",
    ),
    "both kinds of errors": (
        "GPU-002",
        {"sram_secded_volatile": 2, "ecc_uncorrected_volatile": 5},
        "fail",
        "3 uncorrectable memory errors",
    ),
    "old errors, and nothing of new ones": (
        "GPU-002",
        {"ecc_uncorrected_volatile": NOT_SUPPORTED, "ecc_uncorrected_aggregate": 2},
        "warn",
        "when is not known",
    ),
    "errors, and no mode": (
        "GPU-002",
        {"ecc_enabled": NOT_SUPPORTED, "ecc_uncorrected_volatile": 1},
        "fail",
        "1 uncorrectable memory error ",
    ),
    "bank without spare rows": (
        "GPU-003",
        {"remap_banks_none": 2},
        "warn",
        "2 memory banks have no spare",
    ),
    "bank with few spare rows": (
        "GPU-003",
        {"remap_banks_low": 1},
        "warn",
        "1 memory bank has few",
    ),
    "bank with some spare rows": ("GPU-003", {"remap_banks_partial": 7}, "pass", "no row remapped"),
    "drain recommended": (
        "GPU-006",
        {"drain_and_reset_recommended": True},
        "fail",
        "drained of work",
    ),
    "IMEX domain": (
        "GPU-006",
        {"recovery_action": "Recover IMEX Domain"},
        "fail",
        "nvidia-imex-ctl",
    ),
    "corrupt InfoROM": ("GPU-032", {"inforom_valid": False}, "fail", "corrupt"),
    "a fact says corrupt InfoROM": (
        "GPU-032",
        {"ecc_corrected_aggregate": CORRUPT},
        "fail",
        "corrupt",
    ),
    "unreadable InfoROM": (
        "GPU-032",
        {"inforom": BROKEN, "inforom_valid": BROKEN},
        "warn",
        "cannot be read",
    ),
    "a data-centre board without InfoROM": (
        "GPU-032",
        {"inforom": NOT_SUPPORTED, "inforom_valid": NOT_SUPPORTED},
        "warn",
        "cannot be read",
    ),
    "a GeForce without InfoROM": (
        "GPU-032",
        {"inforom": NOT_SUPPORTED, "inforom_valid": NOT_SUPPORTED, "brand": "GeForce"},
        "pass",
        "not supported",
    ),
    "a vGPU without InfoROM": (
        "GPU-032",
        {"inforom": NOT_SUPPORTED, "inforom_valid": NOT_SUPPORTED, "virtualization": "VGPU"},
        "pass",
        "not supported",
    ),
    "GSP off": (
        "GPU-033",
        {"gsp_firmware": NOT_SUPPORTED, "gsp_enabled": False},
        "warn",
        "NVreg_EnableGpuFirmware",
    ),
    "GSP off, as by default": (
        "GPU-033",
        {"gsp_firmware": NOT_SUPPORTED, "gsp_enabled": False, "gsp_default": False},
        "pass",
        "do without",
    ),
    "GSP N/A on Hopper": ("GPU-033", NOT_TOLD, "warn", "without its GSP firmware"),
    "GSP N/A on Ampere with an old driver": ("GPU-033", NOT_TOLD | A100, "pass", "do without"),
    "GSP N/A on a vGPU": (
        "GPU-033",
        NOT_TOLD | {"virtualization": "VGPU"},
        "pass",
        "host of a virtual GPU",
    ),
    "GSP N/A on Jetson": (
        "GPU-033",
        NOT_TOLD | {"memory_total_mib": NOT_SUPPORTED},
        "pass",
        "do without",
    ),
    "no power cable": ("GPU-034", {"power_draw_w": NO_POWER}, "fail", "power cables"),
    "power is not told": (
        "GPU-034",
        {"power_draw_w": NOT_SUPPORTED, "power_limit_w": NOT_SUPPORTED},
        "pass",
        "not supported",
    ),
    "below the board's least power": (
        "GPU-009",
        {"power_limit_w": 100.0, "power_min_limit_w": 200.0},
        "warn",
        "the board's default 700 W",
    ),
    "module's limit lowered": (
        "GPU-009",
        {"module_power_limit_w": 600.0, "module_power_default_limit_w": 1000.0},
        "warn",
        "-pl 1000 -sc 1",
    ),
    "memory's heat explains the clocks": (
        "GPU-008",
        {"clock_event_reasons": ["sw_thermal_slowdown"], "memory_temperature_c": 105},
        "pass",
        "GPU-030",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    code, changes, outcome, words = CASES[name]
    assert_case(code, with_fault(**changes), outcome, words)


@pytest.mark.parametrize(
    ("microseconds", "said"),
    [
        (830, "830 µs"),
        (12_345, "12 ms"),
        (4_200_000, "4.2 s"),
        (900_000_000, "15 min"),
        (12_600_000_000, "3.5 h"),
    ],
)
def test_durations(microseconds: int, said: str) -> None:
    assert duration(microseconds) == said


def test_what_holds_the_clocks_down_now_is_told_once_with_its_time() -> None:
    hot = with_fault(
        clock_event_reasons=["hw_slowdown", "hw_thermal_slowdown"], slowdown_hw_thermal_us=5_000_000
    )
    found = results(hot, ["gpu"])
    assert [code for code, one in found.items() if one.findings] == ["GPU-008"]
    assert "slowdown_hw_thermal_us" in told(found["GPU-008"])


def test_past_slowdown_of_a_gpu_that_is_too_hot_is_its_consequence() -> None:
    found = results(with_fault(temperature_margin_c=-1, slowdown_hw_thermal_us=9), ["gpu"])
    assert found["GPU-007"].outcome == "fail"
    assert found["GPU-027"].consequence_of == "GPU-007"


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


def test_faults_of_the_fabric_have_different_messages() -> None:
    told_each = {judged_alone(fabric(one), "GPU-012").findings[0].message for one in FABRIC_FAULTS}
    assert len(told_each) == len(FABRIC_FAULTS)


@pytest.mark.parametrize(
    ("faults", "count"),
    [
        (["no_partition", "partition_not_assigned"], 1),
        (["degraded_bandwidth", "insufficient_nvlinks"], 2),
        (["unknown_9"], 1),
    ],
)
def test_several_faults_of_the_fabric(faults: list[str], count: int) -> None:
    found = judged_alone(with_fault(fabric_health="Unhealthy", fabric_faults=faults), "GPU-012")
    assert len(found.findings) == count and found.outcome == "fail"


def test_a_multi_node_fabric_has_no_manager_here() -> None:
    gpus = [gpu(n, name="NVIDIA GB200", fabric_state="Not Started") for n in range(4)]
    remedy = told(judged_alone(machine(gpus, kernel=kernel(services=[])), "GPU-012"))
    assert "nvidia-imex" in remedy and "enable --now nvidia-fabricmanager" not in remedy
    gpus = [gpu(0, name="NVIDIA GB300", fabric_faults=["no_partition"]), gpu(1)]
    assert "fmpm" not in told(judged_alone(machine(gpus), "GPU-012"))
    assert "fmpm -l" in told(judged_alone(fabric("no_partition"), "GPU-012"))


@pytest.mark.parametrize(
    ("code", "words", "not_said"),
    [
        (8, "power cables", "gpu-reset"),
        (14, "infoROM", "gpu-reset"),
        (16, f"--gpu-reset -i {ADDRESSES[VICTIM]}", "reseat"),
        (15, "reseat", "power cables"),
    ],
)
def test_a_gpu_that_cannot_be_opened_is_mended_by_its_error(
    code: int, words: str, not_said: str
) -> None:
    left = [gpu(n) for n in range(8) if n != VICTIM]
    snapshot = machine(left)
    probe = snapshot.machine.nvml
    assert probe is not None and probe.facts is not None
    lost = LostGpu(index=VICTIM, error="x", code=code, pci_address=ADDRESSES[VICTIM])
    facts = replace(probe.facts, lost=[lost], gpu_count=8)
    snapshot = replace(
        snapshot, machine=replace(snapshot.machine, nvml=replace(probe, facts=facts))
    )
    (finding,) = judged_alone(snapshot, "GPU-001").findings
    assert finding.remedy is not None
    said = "\n".join([finding.message, finding.remedy.text, *finding.remedy.commands])
    assert words in said and not_said not in said


def sent(count: int, gpus: list[Gpu]) -> Snapshot:
    """What somebody's nvidia-smi printed."""
    facts: NvidiaSmi = replace(smi(gpus), gpu_count=count)
    seen = replace(document(nvidia_smi=facts), origin="nvidia-smi")
    return Snapshot(schema=SCHEMA, redacted=True, machine=seen)


def test_a_document_that_describes_fewer_gpus_than_it_counts() -> None:
    seven = [gpu(n) for n in range(8) if n != VICTIM]
    result = judged_alone(sent(8, seven), "GPU-001")
    assert result.outcome == "warn"
    assert "counts 8 GPUs and describes 7" in told(result)
    assert judged_alone(sent(8, [gpu(0)]), "GPU-001").outcome == "pass"  # -i 0
    half = Gpu(pci_address=ADDRESSES[7], uuid="GPU-1", name="NVIDIA H100 80GB HBM3")
    assert judged_alone(sent(8, [*seven[:5], half]), "GPU-001").outcome == "pass"  # cut
    assert judged_alone(sent(8, [gpu(n) for n in range(8)]), "GPU-001").outcome == "pass"


def test_a_document_that_names_a_gpu_which_could_not_be_asked() -> None:
    lost = Gpu(pci_address=ADDRESSES[VICTIM], uuid=BROKEN)
    result = judged_alone(sent(8, [gpu(n) for n in range(8) if n != VICTIM] + [lost]), "GPU-001")
    assert result.outcome == "fail" and ADDRESSES[VICTIM] in result.findings[0].subject


def test_a_board_whose_inforom_alone_gives_an_error_is_not_about_to_be_lost() -> None:
    found = results(with_fault(inforom=BROKEN, inforom_valid=BROKEN), ["gpu"])
    assert found["GPU-032"].findings and found["GPU-001"].consequence_of == "GPU-032"
