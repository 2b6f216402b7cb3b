"""The NVML probe against a pynvml without a driver: healthy, lost, failing, old and broken twins."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace as Struct
from typing import Any

import captures
import msgspec
import pytest
from fake_nvml import ANSWERS, FabricV1, FabricV3, FakeNvml, NVMLError, Sram, failing, fill, process
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.collector.facts import dumps
from envcheck.collector.nvml import binding as nvml_binding
from envcheck.collector.nvml import gpu as nvml_gpu
from envcheck.collector.nvml import topology as nvml_topology
from envcheck.collector.probes import nvml
from envcheck.collector.runtime.context import Context
from envcheck.collector.smi.document import read_file
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import Gpu, Nvml

CODES = (1, 2, 3, 4, 6, 7, 9, 10, 13, 15, 16, 17, 18, 21, 25, 26, 999, 12345)


@pytest.fixture(autouse=True)
def same_pynvml_afterwards() -> Iterator[None]:
    before = sys.modules.get("pynvml")
    yield
    sys.modules.pop("pynvml", None)
    if before is not None:
        sys.modules["pynvml"] = before


def collect(fake: Any, root: str = "/nonexistent") -> Nvml:
    """The probe's facts through JSON and the Snapshot's types."""
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(nvml, "load", lambda path: fake)
        facts = nvml.collect(Context({}, root=root, params={"pynvml": "/x/pynvml.py"}))
    assert set(facts.sources) - {"*"} <= {f"gpus.{n}" for n in Gpu.__struct_fields__} | set(
        facts.values
    )
    return msgspec.json.decode(dumps(facts.values).encode(), type=Nvml)


def gpus(facts: Nvml) -> list[Gpu]:
    assert isinstance(facts.gpus, list)
    return facts.gpus


def first(**answers: Any) -> Gpu:
    return gpus(collect(FakeNvml(**answers)))[0]


def reason(fact: Any) -> str:
    assert isinstance(fact, Unavailable), fact
    return fact.unavailable


def test_a_healthy_machine() -> None:
    facts = collect(FakeNvml())
    assert (facts.init_code, facts.driver_version, facts.cuda_version) == (0, "590.48.01", "13.1")
    assert (facts.nvml_version, facts.gpu_count, facts.lost) == ("13.590.48.01", 2, [])
    one, other = gpus(facts)
    assert (one.index, one.pci_address, one.compute_capability) == (0, "0000:00:09.0", "9.0")
    assert (other.index, other.pci_address) == (1, "0000:0a:00.0")
    assert (one.memory_total_mib, one.memory_used_mib, one.bar1_used_mib) == (81559, 59, 81081)
    assert (one.ecc_corrected_volatile, one.ecc_corrected_aggregate) == (0, 1)
    assert (one.ecc_uncorrected_volatile, one.ecc_uncorrected_aggregate) == (10, 11)
    assert (one.retired_single_bit, one.retired_double_bit, one.retired_pending) == (1, 2, False)
    assert (one.remap_correctable, one.remap_pending, one.remap_failed) == (1, False, False)
    assert (one.channel_repair_pending, one.tpc_repair_pending) == (False, True)
    assert (one.temperature_shutdown_c, one.temperature_slowdown_c) == (92, 89)
    assert (one.power_draw_w, one.power_min_limit_w, one.power_max_limit_w) == (71.27, 200.0, 700.0)
    assert (one.mig_enabled, one.mig_instances, one.processes) == (False, [], [])
    assert isinstance(facts.pairs, list)
    assert [(p.first, p.second, p.level, p.p2p_read) for p in facts.pairs] == [
        ("0000:00:09.0", "0000:0a:00.0", "SYS", "ok")
    ]


def test_every_field_of_a_gpu_is_asked_for() -> None:
    rows = [*nvml_gpu.FUNCTIONS, *nvml_gpu.GROUPS, *nvml_gpu.FIELD_VALUES]
    named = [name for row in rows for name in row[0].split()]
    assert len(named) == len(set(named))
    # NVML has no function for the first; the index is the position.
    assert set(Gpu.__struct_fields__) - set(named) == {"pcie_gen_max_host", "index"}


def test_the_words_are_nvidia_smi_s() -> None:
    """The fake's answers are those behind the capture: what both sources tell must be the same."""
    (told,) = read_file(str(captures.path(captures.H100_MIG)))["gpus"]
    asked = msgspec.to_builtins(first(nvmlDeviceGetMigMode=[1, 1]))
    different = {
        "uuid", "serial",  # masked
        "mig_instances", "processes",
        "ecc_corrected_aggregate", "ecc_uncorrected_volatile", "ecc_uncorrected_aggregate",
        "retired_single_bit", "retired_double_bit", "retired_pending",
        "remap_correctable", "remap_uncorrectable", "remap_pending", "remap_failed",
        "tpc_repair_pending", "utilization_percent",
        "clock_set_mhz", "clock_set_default_mhz",  # deprecated for the H100's driver
        "clock_memory_set_mhz", "clock_memory_set_default_mhz",
        "remap_banks_max", "remap_banks_high", "remap_banks_partial", "remap_banks_low",
        "remap_banks_none", "module_power_limit_w", "module_power_default_limit_w",
    }  # fmt: skip
    for name in set(told) & set(asked) - different:
        assert asked[name] == told[name], name


def test_a_lost_gpu_is_named_by_what_the_module_lists(tmp_path: Path) -> None:
    for name in ("0000:00:09.0", "0000:0a:00.0"):
        (tmp_path / "proc/driver/nvidia/gpus" / name).mkdir(parents=True)

    def open_gpu(index: int) -> int:
        if index == 1:
            raise NVMLError(15)
        return index

    facts = collect(FakeNvml(nvmlDeviceGetHandleByIndex=open_gpu), root=str(tmp_path))
    assert facts.gpu_count == 2
    assert [gpu.index for gpu in gpus(facts)] == [0]
    (lost,) = facts.lost
    assert (lost.index, lost.code, lost.error, lost.pci_address) == (
        1,
        15,
        "GPU is lost",
        "0000:0a:00.0",
    )
    nameless = collect(FakeNvml(nvmlDeviceGetHandleByIndex=open_gpu)).lost[0]
    assert reason(nameless.pci_address) == "not-collected"


def test_two_lost_gpus_get_no_guessed_address(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia/gpus/0000:00:09.0").mkdir(parents=True)
    facts = collect(FakeNvml(nvmlDeviceGetHandleByIndex=NVMLError(999)), root=str(tmp_path))
    assert gpus(facts) == []
    assert [(lost.code, reason(lost.pci_address)) for lost in facts.lost] == [
        (999, "not-collected")
    ] * 2


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (2, "not-supported"), (3, "not-supported"), (13, "not-supported"), (25, "not-supported"),
        (26, "not-supported"), (4, "no-permission"), (15, "lost"), (10, "timeout"), (6, "absent"),
        (16, "error"), (17, "error"), (999, "error"), (12345, "error"),
    ],
)  # fmt: skip
def test_what_an_nvml_error_means(code: int, expected: str) -> None:
    gpu = first(**failing(code))
    for name in set(Gpu.__struct_fields__) - {"index", "pcie_gen_max_host"}:
        assert reason(getattr(gpu, name)) == expected, name
    if expected == "error":
        assert f"NVML error {code}" in gpu.name.detail  # type: ignore[union-attr]


def test_one_failing_function_costs_its_own_facts_alone() -> None:
    gpu = first(nvmlDeviceGetRemappedRows=NVMLError(999))
    assert reason(gpu.remap_pending) == reason(gpu.remap_correctable) == "error"
    assert gpu.retired_pending is False


@pytest.mark.parametrize("name", sorted(n for n in ANSWERS if n.startswith("nvmlDevice")))
def test_a_pynvml_without_a_function(name: str) -> None:
    facts = collect(FakeNvml(without=(name,)))
    if name in ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"):
        assert reason(facts.init_code) == "error"
        assert "pynvml cannot be used" in facts.init_code.detail  # type: ignore[union-attr]
    else:
        assert len(gpus(facts)) == 2


def test_a_pynvml_that_knows_almost_nothing() -> None:
    kept = ("nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName")
    facts = collect(FakeNvml(without=tuple(n for n in ANSWERS if n not in kept)))
    gpu = gpus(facts)[0]
    assert gpu.name == "NVIDIA H100 80GB HBM3"
    for name in set(Gpu.__struct_fields__) - {"index", "pcie_gen_max_host", "name"}:
        assert reason(getattr(gpu, name)) == "not-supported", name
    assert reason(facts.driver_version) == "not-supported"
    assert facts.pairs == []  # without addresses there are none to name


def test_old_names_of_functions_are_found() -> None:
    old = FakeNvml(
        without=("nvmlSystemGetCudaDriverVersion_v2", "nvmlMemory_v2"),
        nvmlSystemGetCudaDriverVersion=11040,
        nvmlDeviceGetCurrentClocksEventReasons=NVMLError(13),
        nvmlDeviceGetCurrentClocksThrottleReasons=0x44,
        nvmlDeviceGetComputeRunningProcesses_v3=NVMLError(13),
        nvmlDeviceGetComputeRunningProcesses_v2=lambda _handle: [process(5, 12)],
        nvmlDeviceGetMemoryInfo=old_memory,
    )
    facts = collect(old)
    gpu = gpus(facts)[0]
    assert facts.cuda_version == "11.4"
    assert gpu.clock_event_reasons == ["sw_power_cap", "hw_thermal_slowdown"]
    assert isinstance(gpu.processes, list)
    assert [p.pid for p in gpu.processes] == [5]
    assert gpu.memory_used_mib == 1


def old_memory(_handle: object) -> Struct:
    return Struct(total=4 << 20, used=1 << 20, free=3 << 20)


def test_an_old_library_under_a_new_pynvml_tells_memory_its_own_way() -> None:
    def memory(_handle: object, *version: int) -> Struct:
        if version:
            raise NVMLError(13)
        return Struct(total=4 << 20, used=1 << 20, free=3 << 20)

    assert first(nvmlDeviceGetMemoryInfo=memory).memory_total_mib == 4

    def broken(_handle: object, *version: int) -> Struct:
        if version:
            raise NVMLError(999)
        return Struct(total=4 << 20, used=1 << 20, free=3 << 20)

    assert reason(first(nvmlDeviceGetMemoryInfo=broken).memory_total_mib) == "error"


@pytest.mark.parametrize(
    ("code", "words"),
    [(9, "Driver Not Loaded"), (18, "code 18"), (999, "Unknown Error")],
)
def test_an_nvml_that_does_not_start(code: int, words: str) -> None:
    facts = collect(FakeNvml(nvmlInit=NVMLError(code)))
    assert facts.init_code == code
    assert words in str(facts.init_error)
    assert facts.nvml_version == "13.590.48.01"
    for name in ("driver_version", "cuda_version", "gpu_count", "gpus", "pairs"):
        fact = getattr(facts, name)
        assert reason(fact) == "error"
        assert f"NVML error {code}" in fact.detail


def test_no_library_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "LIBRARY", "libnvidia-ml-that-no-machine-has.so")
    facts = collect(FakeNvml(nvmlInit=NVMLError(12)))
    assert facts.init_code == 12
    assert reason(facts.library_path) == reason(facts.nvml_version) == "absent"


def test_the_library_is_the_mapped_one(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/maps").write_text(
        "7f00-7f01 r-xp 00000000 08:01 1    /usr/lib/libc.so.6\n"
        "7f02-7f03 r-xp 00000000 08:01 2    /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.590.48.01\n"
        "7f04-7f05 rw-p 00000000 00:00 0\n"
    )
    facts = collect(FakeNvml(), root=str(tmp_path))
    assert facts.library_path == "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.590.48.01"


def test_a_machine_whose_devices_cannot_be_counted() -> None:
    facts = collect(FakeNvml(nvmlDeviceGetCount=NVMLError(999)))
    assert facts.init_code == 0
    assert reason(facts.gpu_count) == reason(facts.gpus) == reason(facts.pairs) == "error"
    assert gpus(collect(FakeNvml(nvmlDeviceGetCount=0))) == []


def test_mig_instances() -> None:
    def instance(_handle: int, index: int) -> str:
        if index > 1:
            raise NVMLError(6)
        return f"mig{index}"

    gpu = first(nvmlDeviceGetMigMode=[1, 1], nvmlDeviceGetMigDeviceHandleByIndex=instance,
                nvmlDeviceGetUUID=lambda handle: f"MIG-{handle}",
                nvmlDeviceGetComputeInstanceId=NVMLError(4))  # fmt: skip
    assert isinstance(gpu.mig_instances, list)
    assert [(i.uuid, i.gpu_instance, i.multiprocessors, i.memory_mib) for i in gpu.mig_instances] == [
        ("MIG-mig0", 2, 60, 40448), ("MIG-mig1", 2, 60, 40448),
    ]  # fmt: skip
    assert reason(gpu.mig_instances[0].compute_instance) == "no-permission"
    assert first(nvmlDeviceGetMigMode=[1, 1]).mig_instances == []
    refused = first(nvmlDeviceGetMigMode=[1, 1], nvmlDeviceGetMigDeviceHandleByIndex=NVMLError(4))
    assert reason(refused.mig_instances) == "no-permission"


def test_processes_have_nvidia_smi_s_types() -> None:
    gpu = first(
        nvmlDeviceGetComputeRunningProcesses_v3=lambda _h: [
            process(4, 10),
            process(2, 20),
            process(3, 1),
        ],
        nvmlDeviceGetGraphicsRunningProcesses_v3=lambda _h: [process(1, None), process(2, 20)],
        nvmlDeviceGetMPSComputeRunningProcesses_v3=lambda _h: [process(3, 1)],
    )
    assert isinstance(gpu.processes, list)
    assert [(p.pid, p.kind) for p in gpu.processes] == [(1, "G"), (2, "C+G"), (3, "M+C"), (4, "C")]
    assert reason(gpu.processes[0].memory_mib) == "not-supported"
    assert gpu.processes[1].memory_mib == 20
    assert {p.name for p in gpu.processes} == {"/usr/bin/python3"}
    hidden = first(nvmlDeviceGetComputeRunningProcesses_v3=lambda _h: [process(4, 10)],
                   nvmlDeviceGetGraphicsRunningProcesses_v3=NVMLError(3),
                   nvmlSystemGetProcessName=NVMLError(4))  # fmt: skip
    assert isinstance(hidden.processes, list)
    assert reason(hidden.processes[0].name) == "no-permission"


def test_nvlinks() -> None:
    def state(_handle: int, link: int) -> int:
        if link >= 4:
            raise NVMLError(2)
        return int(link != 2)

    gpu = first(nvmlDeviceGetNvLinkState=state)
    assert isinstance(gpu.nvlinks, list)
    assert [(n.link, n.active) for n in gpu.nvlinks] == [
        (0, True),
        (1, True),
        (2, False),
        (3, True),
    ]
    last = gpu.nvlinks[3]
    assert (last.replay_errors, last.recovery_errors, last.crc_errors) == (30, 31, 32)
    assert reason(gpu.nvlinks[2].crc_errors) == "not-collected"

    def broken(_handle: int, link: int) -> int:
        if link == 1:
            raise NVMLError(999)
        return 1

    gpu = first(nvmlDeviceGetNvLinkState=broken, nvmlDeviceGetNvLinkErrorCounter=NVMLError(3))
    assert isinstance(gpu.nvlinks, list)
    assert len(gpu.nvlinks) == 18
    assert reason(gpu.nvlinks[1].active) == "error"
    assert reason(gpu.nvlinks[0].crc_errors) == "not-supported"
    assert reason(first(nvmlDeviceGetNvLinkState=NVMLError(15)).nvlinks) == "lost"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"state": 3, "healthSummary": 1}, ("Completed", "Success", "Healthy")),
        ({"state": 3, "healthSummary": 3}, ("Completed", "Success", "Limited Capacity")),
        ({"state": 3, "healthMask": 0x1AA}, ("Completed", "Success", "Healthy")),
        ({"state": 3, "healthMask": 0x1A9}, ("Completed", "Success", "Limited Capacity")),
        ({"state": 3, "healthMask": 0x19A}, ("Completed", "Success", "Unhealthy")),
        ({"state": 3, "healthMask": 0x4AA}, ("Completed", "Success", "Unhealthy")),
        ({"state": 3, "status": 999}, ("Completed", "error 999", "not-supported")),
        ({"state": 2}, ("In Progress", "absent", "not-supported")),
        ({"state": 1}, ("Not Started", "absent", "not-supported")),
        ({"state": 0}, ("not-supported", "not-supported", "not-supported")),
    ],
)
def test_fabric(values: dict[str, int], expected: tuple[str, str, str]) -> None:
    gpu = first(nvmlDeviceGetGpuFabricInfoV=fill(FabricV3, **values))
    said = (gpu.fabric_state, gpu.fabric_status, gpu.fabric_health)
    assert tuple(f.unavailable if isinstance(f, Unavailable) else f for f in said) == expected


def test_the_place_in_the_fabric_is_told_once_the_gpu_has_joined_it() -> None:
    joined = first(nvmlDeviceGetGpuFabricInfoV=fill(FabricV3, state=3, cliqueId=7))
    assert joined.fabric_clique == 7
    assert joined.fabric_cluster == "00000000-0000-0000-0000-000000000000"
    waiting = first(nvmlDeviceGetGpuFabricInfoV=fill(FabricV3, state=2, cliqueId=7))
    assert reason(waiting.fabric_clique) == "absent"


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (0x51AA, []),
        (0x1A9, ["degraded_bandwidth"]),
        (0x1A6, ["route_recovery_in_progress"]),
        (0x19A, ["route_unhealthy"]),
        (0x16A, ["access_timeout_recovery"]),
        (0x4AA, ["no_partition"]),
        (0x5A9, ["degraded_bandwidth", "insufficient_nvlinks"]),
        (0x8AA, ["gpu_state_invalid"]),
        (0x9AA, ["unknown_9"]),
        (0x21AA, ["partition_not_assigned"]),
        (0x81AA, ["fabric_manager_disconnected"]),
        (0, "not-supported"),
    ],
)
def test_every_fault_of_the_fabric_has_a_name_whatever_the_summary(
    mask: int, expected: object
) -> None:
    gpu = first(
        nvmlDeviceGetGpuFabricInfoV=fill(FabricV3, state=3, healthSummary=2, healthMask=mask)
    )
    assert gpu.fabric_health == "Unhealthy"
    assert (reason(gpu.fabric_faults) if mask == 0 else gpu.fabric_faults) == expected


@pytest.mark.parametrize(
    ("driver", "asked"),
    [("570.86.15", 269), ("575.51.03", 251), ("580.65.06", 251), ("580.82.07", 269), ("x", 269)],
)
def test_slowdowns_are_asked_for_by_the_driver_s_own_numbers(driver: str, asked: int) -> None:
    times = {asked: 1_500, asked + 1: 2_000_000, asked + 2: 3_000_000_000}

    def values(_handle: int, numbers: list[Any]) -> list[Struct]:
        told = numbers[0] in times
        return [
            Struct(
                nvmlReturn=0 if told else 3,
                valueType=3,
                value=Struct(ullVal=times.get(numbers[0])),
            )
        ]

    gpu = first(nvmlSystemGetDriverVersion=driver, nvmlDeviceGetFieldValues=values)
    seen = (
        gpu.slowdown_sw_thermal_us,
        gpu.slowdown_hw_thermal_us,
        gpu.slowdown_hw_power_brake_us,
    )
    assert seen == (1, 2_000, 3_000_000)
    assert reason(gpu.slowdown_sw_power_cap_us) == "not-supported"


def test_an_old_driver_counts_heat_alone() -> None:
    def values(_handle: int, numbers: list[Any]) -> list[Struct]:
        told = {75: 90_000_000_000}.get(numbers[0])
        return [
            Struct(nvmlReturn=0 if told else 3, valueType=3, value=Struct(ullVal=told)),
        ]

    old = first(nvmlSystemGetDriverVersion="535.104.05", nvmlDeviceGetFieldValues=values)
    assert old.slowdown_sw_thermal_us == 90_000_000
    assert reason(old.slowdown_hw_thermal_us) == "not-supported"
    new = first(nvmlDeviceGetFieldValues=values)
    assert reason(new.slowdown_sw_thermal_us) == "not-supported"


def test_sram_errors_each_by_itself() -> None:
    gpu = first(
        nvmlDeviceGetSramEccErrorStatus=fill(
            Sram,
            volatileUncParity=1,
            aggregateUncParity=2,
            volatileUncSecDed=3,
            aggregateUncSecDed=4,
            bThresholdExceeded=1,
        )
    )
    assert gpu.sram_threshold_exceeded is True
    assert (gpu.sram_parity_volatile, gpu.sram_parity_aggregate) == (1, 2)
    assert (gpu.sram_secded_volatile, gpu.sram_secded_aggregate) == (3, 4)


def test_an_inforom_that_is_corrupt_or_cannot_be_asked_for() -> None:
    assert first(nvmlDeviceValidateInforom=NVMLError(14)).inforom_valid is False
    assert reason(first(nvmlDeviceValidateInforom=NVMLError(3)).inforom_valid) == "not-supported"
    assert reason(first(nvmlDeviceGetInforomImageVersion=NVMLError(999)).inforom) == "error"


def test_fabric_of_an_old_driver() -> None:
    gpu = first(nvmlDeviceGetGpuFabricInfoV=NVMLError(13),
                nvmlDeviceGetGpuFabricInfo=fill(FabricV1, state=2))  # fmt: skip
    assert gpu.fabric_state == "In Progress"


def licence(virtual: int, enabled: int, state: int, **expiry: int) -> Gpu:
    feature = Struct(featureEnabled=enabled, featureState=state, licenseExpiry=Struct(**expiry))
    features = Struct(
        isGridLicenseSupported=1, licensableFeaturesCount=1, gridLicensableFeatures=[feature, None]
    )
    return first(
        nvmlDeviceGetGridLicensableFeatures_v4=features, nvmlDeviceGetVirtualizationMode=virtual
    )


def test_vgpu_licence() -> None:
    assert licence(2, 0, 0, status=0).vgpu_licence == "Unlicensed"
    expiry = {"year": 2026, "month": 7, "day": 7, "hour": 16, "min": 1, "sec": 44}
    assert (
        licence(2, 1, 1, status=2, **expiry).vgpu_licence
        == "Licensed (Expiry: 2026-7-7 16:1:44 GMT)"
    )
    assert licence(2, 1, 1, status=4).vgpu_licence == "Licensed (Expiry: Permanent)"
    assert licence(2, 1, 1, status=0).vgpu_licence == "Licensed"
    # A physical GPU that could be licensed, and needs to be by nobody.
    assert reason(licence(0, 0, 0, status=0).vgpu_licence) == "absent"
    assert reason(first().vgpu_licence) == "not-supported"


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "None"), (1, "Reset"), (4, "Drain and Reset"), (42, "action 42")]
)
def test_recovery_action(number: int, expected: str) -> None:
    answer = Struct(nvmlReturn=0, valueType=1, value=Struct(uiVal=number))
    assert first(nvmlDeviceGetFieldValues=lambda *_: [answer]).recovery_action == expected
    failed = Struct(nvmlReturn=3, valueType=0, value=None)
    assert (
        reason(first(nvmlDeviceGetFieldValues=lambda *_: [failed]).recovery_action)
        == "not-supported"
    )


def test_sensors_that_read_as_nothing() -> None:
    gpu = first(nvmlDeviceGetTemperatureThreshold=lambda *_: 0, nvmlDeviceGetPerformanceState=32,
                nvmlDeviceGetSerial="", nvmlDeviceGetArchitecture=0xFFFFFFFF,
                nvmlDeviceGetCurrentClocksEventReasons=0x801,
                nvmlDeviceGetSramEccErrorStatus=fill(Sram, bThresholdExceeded=1))  # fmt: skip
    assert reason(gpu.temperature_slowdown_c) == reason(gpu.performance_state) == "not-supported"
    assert (reason(gpu.serial), reason(gpu.architecture)) == ("absent", "not-supported")
    assert gpu.clock_event_reasons == ["gpu_idle", "reason_0x800"]
    assert gpu.sram_threshold_exceeded is True


def test_too_many_gpus_for_pairs() -> None:
    opened = [(index, {"pci_address": f"0000:{index:02x}:00.0"}) for index in range(17)]
    told = nvml_topology.pairs(nvml_binding.Binding(FakeNvml()), opened)
    assert told["unavailable"] == "not-collected"
    assert len(nvml_topology.pairs(nvml_binding.Binding(FakeNvml()), opened[:16])) == 120


def test_pairs_are_in_the_order_of_their_addresses() -> None:
    opened = [(0, {"pci_address": "0000:0a:00.0"}), (1, {"pci_address": "0000:09:00.0"})]
    fake = FakeNvml(nvmlDeviceGetTopologyCommonAncestor=20, nvmlDeviceGetP2PStatus=NVMLError(3))
    (pair,) = nvml_topology.pairs(nvml_binding.Binding(fake), opened)
    assert (pair["first"], pair["second"], pair["level"]) == ("0000:09:00.0", "0000:0a:00.0", "PXB")
    assert pair["p2p_read"] == {"unavailable": "not-supported"}


@pytest.mark.parametrize(
    ("source", "reasons", "words"),
    [
        (None, ("absent", "error"), "FileNotFoundError"),
        ("import no_such_module_at_all", ("absent", "error"), "no_such_module_at_all"),
        ("print 'python 2'", ("error", "error"), "SyntaxError"),
        ("nvmlInit = 1", ("error", "error"), "nvmlDeviceGetCount"),
        ("raise RuntimeError('broken')", ("error", "error"), "broken"),
    ],
)
def test_a_pynvml_that_cannot_be_used(
    tmp_path: Path, source: str | None, reasons: tuple[str, str], words: str
) -> None:
    path = tmp_path / "pynvml.py"
    if source is not None:
        path.write_text(source)
    facts = nvml.collect(Context({}, params={"pynvml": str(path)}))
    told = msgspec.json.decode(dumps(facts.values).encode(), type=Nvml)
    assert (reason(told.binding_version), reason(told.init_code)) == reasons
    for fact in (told.binding_version, told.init_code, told.gpus, told.driver_version):
        assert words in fact.detail  # type: ignore[union-attr]


def test_pynvml_is_loaded_from_where_it_is_said_to_be(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    (folder / "nvidia_ml_py-12.535.161.dist-info").mkdir(parents=True)
    path = folder / "pynvml.py"
    path.write_text(
        "class NVMLError(Exception):\n    value = 9\n"
        "def nvmlInit(): raise NVMLError('Driver Not Loaded')\n"
        "nvmlDeviceGetCount = nvmlDeviceGetHandleByIndex = None\n"
        "def nvmlSystemGetNVMLVersion(): return 'x'\n"
    )
    facts = nvml.collect(Context({}, params={"pynvml": str(path)}))
    assert (facts.values["binding_version"], facts.values["init_code"]) == ("12.535.161", 9)
    assert facts.values["init_error"] == "Driver Not Loaded"


def test_the_real_module_has_every_name_in_the_tables() -> None:
    """Against nvidia-ml-py itself: a misspelt function would look like an old driver for ever."""
    pynvml = pytest.importorskip("pynvml")
    for names, functions, *_ in [
        (row[0].split(), nvml_gpu._functions(row[1])) for row in nvml_gpu.FUNCTIONS
    ]:
        assert all(hasattr(pynvml, function) for function in functions), names
    for _name, constant, _convert in nvml_gpu.FIELD_VALUES:
        assert isinstance(getattr(pynvml, constant), int)
    aliases = {"nvmlInit", "nvmlDeviceGetMPSComputeRunningProcesses_v3"}
    for name in {*ANSWERS, *aliases}:
        assert hasattr(pynvml, name), name
    for structure in ("c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t", "c_nvmlGpuFabricInfo_t",
                      "c_nvmlEccSramErrorStatus_v1_t"):  # fmt: skip
        getattr(pynvml, structure)()


ODD = st.one_of(
    st.integers(-1, 1 << 64), st.none(), st.text(max_size=5), st.binary(max_size=5),
    st.lists(st.integers(), max_size=3), st.sampled_from([NVMLError(code) for code in CODES]),
    st.just(ValueError("x")),
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(ANSWERS)), ODD, max_size=12))
def test_whatever_nvml_answers_is_a_snapshot(answers: dict[str, Any]) -> None:
    facts = collect(FakeNvml(**answers))
    assert facts.binding_version
