"""The checks on single GPUs: what fails, what is healthy, and what cannot be judged."""

from __future__ import annotations

import pytest
import targets
from build import gpu_snapshot, snapshot
from h100 import ADDRESSES, VICTIM, gpu, kernel, lost_gpu, machine, nvml, with_fault
from judged import assert_case, full_text, judged_alone, results
from msgspec.structs import replace

from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import Gpu, LostGpu
from envcheck.facts.kernel import Kernel as KernelFacts
from envcheck.facts.kernel import KernelEvent, Service
from envcheck.facts.target import Environment

# (code, the GPU's facts, outcome, words that the reader must see)
CASES = {
    "ecc aggregate": ("GPU-002", {"ecc_uncorrected_aggregate": 1}, "warn", "in the board's life"),
    "each past error repaired": (
        "GPU-002",
        {"ecc_uncorrected_aggregate": 2, "remap_uncorrectable": 2},
        "pass",
        "no uncorrectable",
    ),
    "one past error more": (
        "GPU-002",
        {"ecc_uncorrected_aggregate": 3, "remap_uncorrectable": 2},
        "warn",
        "3 uncorrectable",
    ),
    "no spare rows": ("GPU-003", {"remap_banks_none": 2}, "warn", "with no spare rows"),
    "unrepairable": ("GPU-003", {"unrepairable_memory": True}, "fail", "replacement (RMA)"),
    "a channel's repair": (
        "GPU-003",
        {"channel_repair_pending": True},
        "fail",
        "repair of a channel of the memory is pending",
    ),
    "power misread": (
        "GPU-008",
        {"power_draw_w": 5880.0, "clock_event_reasons": ["sw_power_cap", "sw_thermal_slowdown"]},
        "fail",
        "cannot be right",
    ),
    "default clock holds": (
        "GPU-029",
        {
            "clock_set_mhz": 1095,
            "clock_set_default_mhz": 1095,
            "clock_event_reasons": ["applications_clocks_setting"],
            "utilization_percent": 98,
        },
        "warn",
        "--auto-boost-default=ENABLED",
    ),
    "default clock above the maximum": (
        "GPU-029",
        {"clock_set_mhz": 1980, "clock_set_default_mhz": 5001},
        "pass",
        "no clock is set low",
    ),
    "retirement pending": ("GPU-004", {"retired_pending": True}, "fail", "still in use"),
    "many retired": ("GPU-004", {"retired_double_bit": 61}, "fail", "61 pages"),
    "sram": ("GPU-031", {"sram_threshold_exceeded": True}, "fail", "threshold"),
    "hw slowdown alone": (
        "GPU-008",
        {"clock_event_reasons": ["hw_slowdown"]},
        "warn",
        "does not say",
    ),
    "sw thermal": (
        "GPU-008",
        {"clock_event_reasons": ["sw_thermal_slowdown"]},
        "warn",
        "driver holds",
    ),
    "generation low, idle": (
        "GPU-010",
        {"pcie_gen": 1, "utilization_percent": 0, "performance_state": "P8"},
        "pass",
        "judged under load",
    ),
    "a limit above the default": ("GPU-009", {"power_limit_w": 720.0}, "pass", "no lower than"),
    "half of the lanes": ("GPU-010", {"pcie_width": 8}, "warn", "x8"),
    "mig pending": ("GPU-011", {"mig_pending": True}, "warn", "next reset"),
    "prohibited": ("GPU-014", {"compute_mode": "Prohibited"}, "fail", "-c DEFAULT"),
    "an unknown mode": ("GPU-014", {"compute_mode": "Odd"}, "pass", "compute mode 'Odd'"),
    "for one thread": ("GPU-014", {"compute_mode": "Exclusive_Thread"}, "warn", "one thread"),
    "persistence off": ("GPU-015", {"persistence": False}, "warn", "nvidia-persistenced"),
    "memory held by nobody": ("GPU-016", {"processes": []}, "warn", "no process is listed"),
    "unlicensed": ("GPU-017", {"vgpu_licence": "Unlicensed (Unrestricted)"}, "warn", "slowed down"),
    "replays": ("GPU-018", {"pcie_replays": 41000}, "warn", "41000 packets"),
    "set low": (
        "GPU-029",
        {"clock_set_mhz": 345, "clock_set_default_mhz": 1980},
        "warn",
        f"sudo nvidia-smi -i {ADDRESSES[VICTIM]} -rac",
    ),
    "past heat": ("GPU-027", {"slowdown_hw_thermal_us": 12_345_678}, "warn", "For 12.35 s"),
    "past power brake": ("GPU-027", {"slowdown_hw_power_brake_us": 40}, "warn", "Power Supply"),
    "hot memory": ("GPU-030", {"memory_temperature_c": 105}, "fail", "from 95 °C on"),
    "parity error": (
        "GPU-031",
        {"sram_parity_volatile": 1},
        "fail",
        "1 uncorrectable parity error",
    ),
    "corrected without end": (
        "GPU-002",
        {"ecc_corrected_volatile": 9_000_000},
        "warn",
        "9,000,000",
    ),
    "rows again and again": (
        "GPU-003",
        {"remap_uncorrectable": 12, "remap_pending": True},
        "fail",
        "RMA",
    ),
    "slow though cool": (
        "GPU-008",
        {"clock_event_reasons": ["sw_thermal_slowdown"], "temperature_margin_c": 41},
        "warn",
        "degrees below the GPU's own",
    ),
    "memory clock stuck": (
        "GPU-029",
        {"clock_memory_mhz": 810, "clock_memory_max_mhz": 1593, "utilization_percent": 97},
        "warn",
        "810 of 1593 MHz",
    ),
    "corrupt InfoROM": ("GPU-032", {"inforom_valid": False}, "fail", "corrupt"),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    code, changes, outcome, words = CASES[name]
    assert_case(code, with_fault(**changes), outcome, words)


def test_the_healthy_machine_passes_what_applies_to_an_h100() -> None:
    outcomes = {code: found.outcome for code, found in results(machine()).items()}
    skipped = dict.fromkeys(("DRV-009", "GPU-004", "GPU-017"), "skipped")  # WSL, pages, vGPU
    assert outcomes == dict.fromkeys(outcomes, "pass") | skipped


def test_a_lost_gpu_explains_nvidia_smis_exit_code() -> None:
    assert results(lost_gpu())["DRV-003"].consequence_of == "GPU-001"


LAPTOP = {
    "name": "NVIDIA GeForce RTX 4060 Laptop GPU",
    "power_limit_w": 50.0,
    "power_default_limit_w": 50.0,
    "power_max_limit_w": 115.0,
    "clock_event_reasons": ["sw_power_cap"],
}


@pytest.mark.parametrize(
    ("changes", "running", "outcome"),
    [
        ({}, False, "warn"),
        ({}, True, "pass"),
        ({"name": "NVIDIA GeForce RTX 4060"}, False, "pass"),
        ({"clock_event_reasons": []}, False, "pass"),
    ],
)
def test_a_laptops_power_limit_without_dynamic_boost(
    changes: dict[str, object], running: bool, outcome: str
) -> None:
    daemon = Service(name="nvidia-powerd", installed=True, running=running)
    found = machine([gpu(0, **LAPTOP | changes)], kernel=kernel(services=[daemon]))
    assert judged_alone(found, "GPU-009").outcome == outcome


def test_a_gpu_without_facts_gives_no_finding() -> None:
    found = results(gpu_snapshot(Gpu(index=0, pci_address=ADDRESSES[0])), ["gpu"])
    assert {r.outcome for r in found.values()} <= {"skipped", "pass"}
    assert found["GPU-001"].outcome == "pass"


def test_a_driver_without_a_gpu_is_skipped() -> None:
    assert {r.outcome for r in results(gpu_snapshot(), ["gpu"]).values()} == {"skipped"}


def test_a_gpu_that_cannot_be_opened() -> None:
    lost = LostGpu(index=1, error="no", code=4)
    result = judged_alone(machine([gpu(0)], nvml=nvml([gpu(0)], lost=[lost])), "GPU-001")
    assert result.outcome == "warn" and "usermod -aG" in full_text(result)


def test_the_kernels_log_is_evidence_for_a_lost_gpu() -> None:
    text = "NVRM: Xid (PCI:0000:61:00): 79, GPU has fallen off the bus."
    event = KernelEvent(kind="xid", text=text, xid=79, pci_address=ADDRESSES[VICTIM])
    lost = LostGpu(index=3, error="GPU is lost", code=15, pci_address=ADDRESSES[VICTIM])
    broken = snapshot(nvml=nvml([], lost=[lost]), kernel=KernelFacts(log=[event]))
    assert text in full_text(judged_alone(broken, "GPU-001"))


def error(code: int) -> Unavailable:
    return Unavailable(unavailable="lost" if code == 15 else "error", detail="words", code=code)


OLDER = Unavailable(unavailable="error", detail="Unknown Error (NVML error 999)")


@pytest.mark.parametrize(
    ("facts", "outcomes"),
    [
        ({"power_draw_w": error(15)}, {"GPU-001": "fail"}),
        ({"name": error(999)}, {"GPU-001": "fail"}),
        ({"name": OLDER}, {"GPU-001": "fail"}),
        ({"power_draw_w": error(16)}, {"GPU-001": "pass", "GPU-006": "fail"}),
        ({"uuid": error(16)}, {"GPU-001": "fail"}),
        ({"power_draw_w": error(14)}, {"GPU-001": "pass", "GPU-032": "fail"}),
        ({"pcie_gen_max_host": error(999)}, {"GPU-001": "warn"}),
        ({"temperature_c": OLDER}, {"GPU-001": "warn"}),
        ({"temperature_c": replace(OLDER, detail="not understood: '?'")}, {"GPU-001": "pass"}),
        ({"stopped": "nvmlDeviceGetSerial did not come back"}, {"GPU-001": "fail"}),
    ],
)
def test_an_error_is_judged_by_its_code_and_by_the_fact(
    facts: dict[str, object], outcomes: dict[str, str]
) -> None:
    found = results(with_fault(**facts), ["gpu"])
    assert {code: found[code].outcome for code in outcomes} == outcomes
    assert all(ADDRESSES[VICTIM] in full_text(found[c]) for c in outcomes if outcomes[c] != "pass")
    alike = results(machine([gpu(n, **facts) for n in range(8)]), ["gpu"])
    if "warn" in outcomes.values():
        assert alike["GPU-001"].outcome == "pass"


def test_errors_of_a_gpu_with_an_xid_are_left_to_what_the_log_asks_for() -> None:
    event = KernelEvent(kind="xid", text="Xid 62", xid=62, pci_address=ADDRESSES[VICTIM])
    gpus = [gpu(n, **({"power_draw_w": error(999)} if n == VICTIM else {})) for n in range(8)]
    advice = judged_alone(machine(gpus, kernel=kernel(log=[event])), "GPU-001").findings[0].remedy
    assert advice is not None and "KRN-008" in advice.text
    assert not any("reset" in command for command in advice.commands)


def test_nvml_that_cannot_count_its_gpus_is_a_finding() -> None:
    none = error(999)
    broken = machine([], nvml=replace(nvml([]), gpu_count=none, gpus=none, pairs=none))
    result = judged_alone(broken, "DRV-001")
    assert (result.outcome, result.findings[0].cause.key) == ("fail", "gpus-not-listed")
    assert "999" in full_text(result)


def test_two_gpus_with_one_uuid() -> None:
    result = judged_alone(with_fault(uuid=gpu(0).uuid), "DRV-007")
    (finding,) = result.findings
    assert finding.cause.key == "same-uuid-twice"
    assert [one.index for one in finding.subjects] == [0, VICTIM]


def test_persistence_off_counts_beside_a_running_daemon() -> None:
    running = kernel(services=[Service(name="nvidia-persistenced", running=True)])
    off = machine([gpu(n, persistence=n != VICTIM) for n in range(8)], kernel=running)
    result = judged_alone(off, "GPU-015")
    assert result.outcome == "warn" and "-pm 1" in full_text(result)


def test_more_memory_in_use_than_there_is_is_not_judged() -> None:
    result = results(machine([gpu(memory_used_mib=999_999)]), ["gpu"])["GPU-016"]
    assert result.outcome == "skipped" and "999999 of" in result.reason


def test_a_full_gpu_names_the_variable_that_is_not_set() -> None:
    full = machine([gpu(memory_used_mib=80000)])
    target = targets.good_target(environment=Environment(variables={}))
    assert "TF_FORCE_GPU_ALLOW_GROWTH=true" in full_text(
        judged_alone(replace(full, target=target), "GPU-016")
    )


@pytest.mark.parametrize(
    ("variables", "used", "outcome"),
    [
        ({}, 30000, "warn"),
        ({}, 15000, "pass"),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".4"}, 30000, "pass"),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, 30000, "pass"),
    ],
)
def test_memory_that_jax_takes_at_its_start(
    variables: dict[str, str], used: int, outcome: str
) -> None:
    target = targets.good_target(
        environment=Environment(variables=variables), jax=targets.tensorflow(name="jax")
    )
    busy = replace(machine([gpu(memory_used_mib=used)]), target=target)
    assert judged_alone(busy, "GPU-016").outcome == outcome


@pytest.mark.parametrize(
    ("facts", "last"),
    [({"stopped": "it did not come back"}, "sudo reboot"), ({"uuid": error(15)}, "sudo poweroff")],
)
def test_no_reset_is_printed_that_cannot_reach_the_gpu(facts: dict[str, object], last: str) -> None:
    (finding,) = judged_alone(with_fault(**facts), "GPU-001").findings
    assert finding.remedy is not None and finding.remedy.commands[-1] == last
    assert not any("--gpu-reset" in one for one in finding.remedy.commands)
