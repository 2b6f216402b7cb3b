"""What the NVML probe makes of a GPU's answers, and the labels of NVML's numbers."""

from __future__ import annotations

import re
import struct
from typing import Any

import pynvml
import pytest
from nvml_asked import code, collect, field, first, gpus, two
from world.kernel_tree import reason

from envcheck.collector.nvml.labels import clock_event_reasons
from envcheck.facts.base import Unavailable


def test_mig_instances() -> None:
    instances = [{"gi": n, "uuid": f"mig{n}", "sms": 60, "mib": 40448} for n in (2, 3)]
    gpu = first(mig=(True, True), mig_instances=instances)
    assert isinstance(gpu.mig_instances, list)
    assert [(i.uuid, i.gpu_instance, i.multiprocessors, i.memory_mib) for i in gpu.mig_instances] == [
        ("MIG-mig2", 2, 60, 40448), ("MIG-mig3", 3, 60, 40448),
    ]  # fmt: skip
    assert first(mig=(True, True)).mig_instances == []
    hidden = code(4, "nvmlDeviceGetMigDeviceHandleByIndex")
    assert reason(first(hidden, mig=(True, True)).mig_instances) == "no-permission"


def test_processes_have_nvidia_smi_s_types() -> None:
    gpu = first(processes=[(4, 10), (2, 20), (3, 1)], graphics=[(1, None), (2, 20)], mps=[(3, 1)])
    assert isinstance(gpu.processes, list)
    assert [(p.pid, p.kind) for p in gpu.processes] == [(1, "G"), (2, "C+G"), (3, "M+C"), (4, "C")]
    assert reason(gpu.processes[0].memory_mib) == "not-supported"
    assert gpu.processes[1].memory_mib == 20
    assert {p.name for p in gpu.processes} == {"/usr/bin/python3"}
    hidden = first(code(4, "nvmlSystemGetProcessName", handle="0"), processes=[(4, 10)])
    assert isinstance(hidden.processes, list)
    assert reason(hidden.processes[0].name) == "no-permission"


def test_nvlinks() -> None:
    links = [{"active": n != 2, "errors": {"crc": n}, "version": 4} for n in range(4)]
    gpu = first(links=links)
    assert isinstance(gpu.nvlinks, list)
    assert [(n.link, n.active) for n in gpu.nvlinks] == [
        (0, True), (1, True), (2, False), (3, True),
    ]  # fmt: skip
    last = gpu.nvlinks[3]
    assert (last.replay_errors, last.recovery_errors, last.crc_errors) == (0, 0, 3)
    assert reason(gpu.nvlinks[2].crc_errors) == "not-collected"
    broken = first(
        code(999, "nvmlDeviceGetNvLinkState", "1"), code(3, "nvmlDeviceGetNvLinkErrorCounter")
    )
    assert isinstance(broken.nvlinks, list) and len(broken.nvlinks) == 18
    assert reason(broken.nvlinks[1].active) == "error"
    assert reason(broken.nvlinks[0].crc_errors) == "not-supported"
    assert reason(first(code(15, "nvmlDeviceGetNvLinkState")).nvlinks) == "lost"


@pytest.mark.parametrize(
    ("fabric", "expected"),
    [
        (("Completed", 0, 0, 1), ("Completed", "Success", "Healthy")),
        (("Completed", 0, 0, 3), ("Completed", "Success", "Limited Capacity")),
        (("Completed", 0, 0x1AA, 0), ("Completed", "Success", "Healthy")),
        (("Completed", 0, 0x1A9, 0), ("Completed", "Success", "Limited Capacity")),
        (("Completed", 0, 0x19A, 0), ("Completed", "Success", "Unhealthy")),
        (("Completed", 0, 0x4AA, 0), ("Completed", "Success", "Unhealthy")),
        (("Completed", 999, 0, 0), ("Completed", "NVML error 999", "not-supported")),
        (("In Progress", 0, 0, 0), ("In Progress", "absent", "not-supported")),
        (("Not Started", 0, 0, 0), ("Not Started", "absent", "not-supported")),
        ((None, 0, 0, 0), ("not-supported", "not-supported", "not-supported")),
    ],
)
def test_fabric(fabric: tuple[str | None, int, int, int], expected: tuple[str, str, str]) -> None:
    gpu = first(fabric=fabric)
    facts = (gpu.fabric_state, gpu.fabric_status, gpu.fabric_health)
    assert tuple(f.unavailable if isinstance(f, Unavailable) else f for f in facts) == expected


def test_the_place_in_the_fabric_is_known_once_the_gpu_has_joined_it() -> None:
    joined = first(fabric=("Completed", 0, 0, 0), fabric_clique=7)
    assert joined.fabric_clique == 7
    assert joined.fabric_cluster == "00000000-0000-0000-0000-000000000000"
    assert reason(first(fabric=("In Progress", 0, 0, 0), fabric_clique=7).fabric_clique) == "absent"
    old = two(fabric=("In Progress", 0, 0, 0))
    assert (
        gpus(collect(old, lacks=("nvmlDeviceGetGpuFabricInfoV",)))[0].fabric_state == "In Progress"
    )


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
def test_every_fault_of_the_fabric_has_a_name(mask: int, expected: object) -> None:
    gpu = first(fabric=("Completed", 0, mask, 2))
    assert gpu.fabric_health == "Unhealthy"
    assert (reason(gpu.fabric_faults) if mask == 0 else gpu.fabric_faults) == expected


@pytest.mark.parametrize(
    ("driver", "asked"),
    [("570.86.15", 269), ("575.51.03", 251), ("580.65.06", 251), ("580.82.07", 269), ("x", 269)],
)
def test_slowdowns_are_asked_for_by_the_driver_s_own_numbers(driver: str, asked: int) -> None:
    times = (1_500, 2_000_000, 3_000_000_000)
    rows = [field(asked + place, value) for place, value in enumerate(times)]
    gpu = first(*rows, code(3, "nvmlDeviceGetFieldValues"), driver=driver)
    assert (
        gpu.slowdown_sw_thermal_us, gpu.slowdown_hw_thermal_us, gpu.slowdown_hw_power_brake_us
    ) == (1, 2_000, 3_000_000)  # fmt: skip


def test_an_old_driver_counts_heat_alone() -> None:
    rows = (field(75, 90_000_000_000), code(3, "nvmlDeviceGetFieldValues"))
    old = first(*rows, driver="535.104.05")
    assert old.slowdown_sw_thermal_us == 90_000_000
    assert reason(old.slowdown_hw_thermal_us) == "not-supported"
    assert reason(first(*rows, driver="580.82.07").slowdown_sw_thermal_us) == "not-supported"


def test_an_inforom_that_is_corrupt_or_cannot_be_asked_for() -> None:
    assert first(inforom_valid=False).inforom_valid is False
    assert reason(first(inforom=None).inforom_valid) == "not-supported"
    assert reason(first(code(999, "nvmlDeviceGetInforomImageVersion")).inforom) == "error"


def test_vgpu_licence() -> None:
    def licence(virtual: int, licensed: bool, **expiry: int) -> Any:
        return first(virtualization=virtual, licence=licensed, licence_expiry=expiry).vgpu_licence

    date = {"year": 2026, "month": 7, "day": 7, "hour": 16, "min": 1, "sec": 44}
    assert licence(2, False, status=0) == "Unlicensed"
    assert licence(2, True, status=2, **date) == "Licensed (Expiry: 2026-7-7 16:1:44 GMT)"
    assert licence(2, True, status=4) == "Licensed (Expiry: Permanent)"
    assert licence(2, True, status=0) == "Licensed"
    assert reason(licence(0, False, status=0)) == "absent"  # a physical GPU needs none
    assert reason(first().vgpu_licence) == "not-supported"


def test_sensors_that_read_as_nothing() -> None:
    gpu = first(slowdown_c=0, pstate=32, serial="", architecture=0xFFFFFFFF)
    assert reason(gpu.temperature_slowdown_c) == reason(gpu.performance_state) == "not-supported"
    assert (reason(gpu.serial), reason(gpu.architecture)) == ("absent", "not-supported")
    unknown = f"1 nvmlDeviceGetCurrentClocksEventReasons - 0 - {struct.pack('=Q', 0x801).hex()}"
    assert first(unknown).clock_event_reasons == ["gpu_idle", "reason_0x800"]


REASONS = [name for name in vars(pynvml) if re.match(r"nvmlClocks\w+Reason(?!All|None)", name)]


@pytest.mark.parametrize("name", REASONS)
def test_every_clock_event_reason_of_the_binding_has_a_label(name: str) -> None:
    labels = clock_event_reasons(getattr(pynvml, name))
    assert len(labels) == 1 and not labels[0].startswith("reason_")
