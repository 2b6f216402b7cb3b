"""The checks on single GPUs: what fails, what is healthy, and what cannot be judged."""

from __future__ import annotations

import pytest
import targets
from build import gpu_snapshot, snapshot
from h100 import ABSENT, ADDRESSES, ERROR, NOT_SUPPORTED, VICTIM, gpu, machine, nvml, with_fault
from hypothesis import given, settings
from hypothesis import strategies as st
from judged import assert_case, checks_of, judged_alone, results, told
from msgspec.structs import replace

from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import Gpu, LostGpu
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel as KernelFacts
from envcheck.facts.kernel import KernelEvent
from envcheck.facts.target import Environment

LOST = Unavailable(unavailable="lost", detail="GPU is lost (NVML error 15)")
UNKNOWN = Unavailable(unavailable="error", detail="Unknown Error (NVML error 999)")
BAD_CALL = Unavailable(unavailable="error", detail="Invalid Argument (NVML error 2)")

# (code, the GPU's facts, outcome, words that the reader must see)
CASES = {
    "a fact is lost": ("GPU-001", {"temperature_c": LOST}, "fail", "GPU 3"),
    "a vital fact is an unknown error": ("GPU-001", {"uuid": UNKNOWN}, "fail", "Unknown Error"),
    "a side fact is an unknown error": ("GPU-001", {"fan_percent": UNKNOWN}, "warn", "fan_percent"),
    "a call that was wrong is no loss": ("GPU-001", {"uuid": BAD_CALL}, "pass", "answers"),
    "not supported is no loss": ("GPU-001", {"uuid": NOT_SUPPORTED}, "pass", "answers"),
    "ecc volatile": ("GPU-002", {"ecc_uncorrected_volatile": 3}, "fail", "3 uncorrectable"),
    "ecc aggregate": ("GPU-002", {"ecc_uncorrected_aggregate": 1}, "warn", "in the board's life"),
    "ecc corrected": ("GPU-002", {"ecc_corrected_volatile": 90000}, "pass", "no uncorrectable"),
    "ecc off": ("GPU-002", {"ecc_enabled": False, "ecc_pending": False}, "pass", "ECC is off"),
    "ecc pending": ("GPU-002", {"ecc_pending": False}, "warn", "turned off"),
    "ecc not there": ("GPU-002", {"ecc_enabled": NOT_SUPPORTED}, "pass", "not supported"),
    "remap failed": ("GPU-003", {"remap_failed": True}, "fail", "RMA"),
    "remap pending": (
        "GPU-003",
        {"remap_pending": True},
        "fail",
        f"--gpu-reset -i {ADDRESSES[VICTIM]}",
    ),
    "remap done": ("GPU-003", {"remap_uncorrectable": 2}, "pass", "2 rows remapped"),
    "retirement pending": ("GPU-004", {"retired_pending": True}, "fail", "still in use"),
    "many retired": ("GPU-004", {"retired_double_bit": 61}, "fail", "61 pages"),
    "retired to the limit": ("GPU-004", {"retired_double_bit": 60}, "fail", "60 pages"),
    "nearly retired": ("GPU-004", {"retired_double_bit": 59}, "pass", "59 pages"),
    "few retired": (
        "GPU-004",
        {"retired_single_bit": 2, "retired_double_bit": 1},
        "pass",
        "3 pages",
    ),
    "no retirement": ("GPU-004", {}, "skipped", "not supported"),
    "nothing to repair": ("GPU-005", {}, "pass", "nothing to repair"),
    "unrepairable": ("GPU-005", {"unrepairable_memory": True}, "fail", "cannot mend"),
    "sram": ("GPU-005", {"sram_threshold_exceeded": True}, "fail", "threshold"),
    "channel repair": ("GPU-005", {"channel_repair_pending": True}, "fail", "memory channel"),
    "tpc repair": ("GPU-005", {"tpc_repair_pending": True}, "fail", "multiprocessors"),
    "recovery reset": ("GPU-006", {"recovery_action": "Reset"}, "fail", "--gpu-reset"),
    "recovery reboot": ("GPU-006", {"recovery_action": "Reboot"}, "fail", "sudo reboot"),
    "recovery drain": ("GPU-006", {"recovery_action": "Drain and Reset"}, "fail", "drained"),
    "recovery imex": ("GPU-006", {"recovery_action": "Recover IMEX Domain"}, "fail", "IMEX"),
    "reset required": (
        "GPU-006",
        {"recovery_action": NOT_SUPPORTED, "reset_required": True},
        "fail",
        "must be reset",
    ),
    "no reset required": (
        "GPU-006",
        {"recovery_action": NOT_SUPPORTED, "reset_required": False},
        "pass",
        "no recovery action",
    ),
    "no recovery told": (
        "GPU-006",
        {"recovery_action": NOT_SUPPORTED, "reset_required": NOT_SUPPORTED},
        "pass",
        "not supported",
    ),
    "hot by margin": ("GPU-007", {"temperature_c": 90, "temperature_margin_c": 0}, "fail", "90 °C"),
    "hot by threshold": (
        "GPU-007",
        {"temperature_c": 93, "temperature_slowdown_c": 93, "temperature_margin_c": NOT_SUPPORTED},
        "fail",
        "slowdown temperature",
    ),
    "no fan": ("GPU-007", {"temperature_c": 80, "fan_percent": 0}, "warn", "fan stands still"),
    "hot without a fan": (
        "GPU-007",
        {"temperature_c": 90, "temperature_margin_c": 0, "fan_percent": 0},
        "fail",
        "fan stands still",
    ),
    "warm": ("GPU-007", {"temperature_margin_c": 1}, "warn", "1 degree below"),
    "no threshold": (
        "GPU-007",
        {"temperature_slowdown_c": NOT_SUPPORTED, "temperature_margin_c": NOT_SUPPORTED},
        "pass",
        "threshold",
    ),
    "thermal": ("GPU-008", {"clock_event_reasons": ["hw_thermal_slowdown"]}, "fail", "heat"),
    "power brake": (
        "GPU-008",
        {"clock_event_reasons": ["hw_power_brake_slowdown"]},
        "fail",
        "power brake",
    ),
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
    "normal reasons": (
        "GPU-008",
        {
            "clock_event_reasons": [
                "gpu_idle",
                "sw_power_cap",
                "applications_clocks_setting",
                "sync_boost",
                "display_clocks_setting",
                "board_limit",
                "reliability",
                "reason_0x800",
            ]
        },
        "pass",
        "no slowdown",
    ),
    "power limit low": ("GPU-009", {"power_limit_w": 500.0}, "warn", "-pl 700"),
    "power limit high": ("GPU-009", {"power_limit_w": 720.0}, "pass", "no lower"),
    "power limit rounded": ("GPU-009", {"power_limit_w": 699.5}, "pass", "default"),
    "generation low": ("GPU-010", {"pcie_gen": 3}, "warn", "generation 3 of 5"),
    "generation low, idle": (
        "GPU-010",
        {"pcie_gen": 1, "utilization_percent": 0, "performance_state": "P8"},
        "pass",
        "judged under load",
    ),
    "generation low, half busy": (
        "GPU-010",
        {"pcie_gen": 3, "utilization_percent": 50, "performance_state": "P8"},
        "warn",
        "generation 3 of 5",
    ),
    "generation low, hardly busy": (
        "GPU-010",
        {"pcie_gen": 3, "utilization_percent": 49, "performance_state": "P8"},
        "pass",
        "judged under load",
    ),
    "generation low, at full clocks and busy": (
        "GPU-010",
        {"pcie_gen": 4, "utilization_percent": 0, "clock_event_reasons": []},
        "warn",
        "generation 4 of 5",
    ),
    "a virtual machine's slot": (
        "GPU-010",
        {"pcie_width": 8, "virtualization": "Pass-Through"},
        "pass",
        "virtual machine",
    ),
    "no width": ("GPU-010", {"pcie_width": NOT_SUPPORTED}, "pass", "width"),
    "mig empty": ("GPU-011", {"mig_enabled": True, "mig_pending": True}, "fail", "-cgi 0 -C"),
    "mig pending": ("GPU-011", {"mig_pending": True}, "warn", "next reset"),
    "mig not supported": ("GPU-011", {"mig_enabled": NOT_SUPPORTED}, "pass", "not supported"),
    "prohibited": ("GPU-014", {"compute_mode": "Prohibited"}, "fail", "-c DEFAULT"),
    "exclusive and held": ("GPU-014", {"compute_mode": "Exclusive_Process"}, "warn", "refused"),
    "exclusive and free": (
        "GPU-014",
        {"compute_mode": "Exclusive_Process", "processes": []},
        "pass",
        "Exclusive_Process",
    ),
    "persistence off": ("GPU-015", {"persistence": False}, "warn", "nvidia-persistenced"),
    "persistence off on a desktop": (
        "GPU-015",
        {"persistence": False, "brand": "GeForce"},
        "pass",
        "does not matter",
    ),
    "memory full": ("GPU-016", {"memory_used_mib": 80000}, "warn", "by python3"),
    "memory held by nobody": ("GPU-016", {"processes": []}, "warn", "no process is listed"),
    "memory used": ("GPU-016", {}, "pass", "memory is free"),
    "unlicensed": ("GPU-017", {"vgpu_licence": "Unlicensed (Unrestricted)"}, "warn", "will soon"),
    "restricted": (
        "GPU-017",
        {"vgpu_licence": "Unlicensed (Restricted)"},
        "fail",
        "CUDA is refused",
    ),
    "licensed": ("GPU-017", {"vgpu_licence": "Licensed (Expiry: 2027-1-1)"}, "pass", "Licensed"),
    "replays": ("GPU-018", {"pcie_replays": 41000}, "warn", "41000 packets"),
    "kepler": ("GPU-020", {"compute_capability": "3.5"}, "warn", "CUDA 11.8"),
    "pascal": ("GPU-020", {"compute_capability": "6.1"}, "pass", "up to CUDA 12.9"),
    "from the future": ("GPU-020", {"compute_capability": "17.0"}, "pass", "not known"),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    code, changes, outcome, words = CASES[name]
    assert_case(code, with_fault(**changes), outcome, words)


# Codes whose cases need more than one GPU's facts: test_gpu_fabric_checks.py.
FABRIC = {"GPU-012", "GPU-013", "GPU-019"}
PEERS = {f"GPU-0{number}" for number in range(21, 27)}  # test_peers_checks.py
HEALTH = {f"GPU-0{number}" for number in range(27, 35)}  # test_gpu_health_checks.py


def test_every_gpu_check_is_tried() -> None:
    tried = {case[0] for case in CASES.values()} | FABRIC | PEERS | HEALTH
    assert tried == {c.code for c in checks_of(["gpu"])}


def test_a_gpu_without_facts_gives_no_finding() -> None:
    found = results(gpu_snapshot(Gpu(index=0, pci_address=ADDRESSES[0])), ["gpu"])
    assert {r.outcome for r in found.values()} <= {"skipped", "pass"}
    assert found["GPU-001"].outcome == "pass"


def test_a_driver_without_a_gpu_is_skipped() -> None:
    assert {r.outcome for r in results(gpu_snapshot(), ["gpu"]).values()} == {"skipped"}


def test_a_fact_in_error_could_not_be_judged_and_is_no_failure() -> None:
    fields = set(Gpu.__struct_fields__) - {"index", "pci_address", "virtualization"}
    broken = gpu_snapshot(gpu(0, **dict.fromkeys(fields, ERROR)))
    found = results(broken, ["gpu"])
    assert not [code for code, r in found.items() if r.findings]
    assert found["GPU-002"].outcome == "could-not-run"


def test_a_lost_gpu_is_gpu_001s_alone() -> None:
    fields = set(Gpu.__struct_fields__) - {"index", "pci_address", "name"}
    found = results(with_fault(**dict.fromkeys(fields, LOST)), ["gpu"])
    assert [code for code, r in found.items() if r.findings or r.outcome == "could-not-run"] == [
        "GPU-001"
    ]
    finding = found["GPU-001"].findings[0]
    assert ADDRESSES[VICTIM] in finding.subject
    assert finding.evidence[0].fact.startswith(f"machine.nvml.gpus[{VICTIM}].")


@pytest.mark.parametrize(
    ("code", "place", "level", "words"),
    [
        (15, {}, "fail", "fallen off the bus"),
        (4, {}, "warn", "usermod -aG"),
        (4242, {}, "fail", "NVML error 4242"),
        (999, {"host": Host(container="docker")}, "fail", "Create the container again"),
    ],
)
def test_a_gpu_that_cannot_be_opened(
    code: int, place: dict[str, Host], level: str, words: str
) -> None:
    lost = LostGpu(index=1, error="no", code=code)
    broken = machine([gpu(0)], nvml=nvml([gpu(0)], lost=[lost]), **place)
    result = judged_alone(broken, "GPU-001")
    assert result.outcome == level and words in told(result)


def test_the_kernels_log_is_evidence_for_a_lost_gpu() -> None:
    text = "NVRM: Xid (PCI:0000:61:00): 79, GPU has fallen off the bus."
    event = KernelEvent(kind="xid", text=text, xid=79, pci_address=ADDRESSES[VICTIM])
    lost = LostGpu(index=3, error="GPU is lost", code=15, pci_address=ADDRESSES[VICTIM])
    broken = snapshot(nvml=nvml([], lost=[lost]), kernel=KernelFacts(log=[event]))
    assert text in told(judged_alone(broken, "GPU-001"))


def test_the_same_on_all_gpus_is_one_finding() -> None:
    found = judged_alone(machine([gpu(n, power_limit_w=400.0) for n in range(8)]), "GPU-009")
    assert len(found.findings) == 1
    assert all(address in found.findings[0].subject for address in ADDRESSES)
    assert len({item.fact for item in found.findings[0].evidence}) == 16


def test_a_windows_desktop_gives_no_finding() -> None:
    desktop = Gpu(
        index=0,
        pci_address="0000:01:00.0",
        name="NVIDIA GeForce RTX 3080",
        brand="GeForce",
        driver_model="WDDM",
        virtualization="Pass-Through",
        persistence=NOT_SUPPORTED,
        compute_mode="Default",
        performance_state="P8",
        memory_total_mib=10240,
        memory_used_mib=1128,
        mig_enabled=NOT_SUPPORTED,
        ecc_enabled=NOT_SUPPORTED,
        temperature_c=40,
        temperature_slowdown_c=95,
        power_limit_w=336.0,
        power_default_limit_w=320.0,
        clock_event_reasons=["gpu_idle"],
        pcie_gen=4,
        pcie_gen_max=4,
        pcie_width=16,
        pcie_width_max=16,
        processes=ABSENT,
    )
    assert not [code for code, r in results(gpu_snapshot(desktop)).items() if r.findings]


_VALUES = {
    "temperature_c": st.integers(-300, 300),
    "temperature_margin_c": st.integers(-300, 300),
    "memory_used_mib": st.integers(0, 1 << 40),
    "memory_total_mib": st.integers(0, 1 << 40),
    "power_limit_w": st.floats(0, 1e6),
    "compute_capability": st.text(max_size=8),
    "compute_mode": st.text(max_size=12),
    "recovery_action": st.text(max_size=12),
    "fabric_state": st.text(max_size=12),
    "vgpu_licence": st.text(max_size=12),
    "performance_state": st.text(max_size=4),
    "clock_event_reasons": st.lists(st.text(max_size=8), max_size=3),
    "pcie_width": st.integers(0, 64),
    "pcie_gen_max": st.integers(0, 9),
    "retired_double_bit": st.integers(0, 100),
    "ecc_uncorrected_volatile": st.integers(0, 1 << 63),
}


@settings(max_examples=30, deadline=None)
@given(st.fixed_dictionaries({}, optional=_VALUES))
def test_whatever_the_driver_says_no_check_crashes(facts: dict[str, object]) -> None:
    found = results(machine([gpu(0, **facts), gpu(1)]), ["gpu"])
    assert not [r.reason for r in found.values() if "crashed" in r.reason]


@pytest.mark.parametrize(
    ("names", "variables", "grow"),
    [
        (["tensorflow"], {}, ["TF_FORCE_GPU_ALLOW_GROWTH=true"]),
        (["jax", "jaxlib"], {}, ["XLA_PYTHON_CLIENT_PREALLOCATE=false"]),
        (["torch"], {}, []),
        (["tensorflow"], {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, []),
        (["jax"], {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".4"}, []),
    ],
)
def test_frameworks_that_take_all_memory_are_told_not_to(
    names: list[str], variables: dict[str, str], grow: list[str]
) -> None:
    full = machine([gpu(memory_used_mib=80000)])
    target = targets.good_target(
        packages=targets.packages(*[targets.dist(name, "2.0.0") for name in names]),
        environment=Environment(variables=variables),
    )
    (finding,) = judged_alone(replace(full, target=target), "GPU-016").findings
    assert finding.remedy is not None
    exports = [one.split()[1] for one in finding.remedy.commands if one.startswith("export")]
    assert exports == grow
