"""The NVML probe on nvidia-ml-py itself, whose library answers for the described machine."""

from __future__ import annotations

import os
import re
import signal
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world import nvml_face, smi
from world.bases import BASES
from world.machine import Machine, nvml_rows
from world.nvml_library import LETTERS

from envcheck.collector.facts import dumps
from envcheck.collector.nvml import binding as nvml_binding
from envcheck.collector.nvml import gpu as nvml_gpu
from envcheck.collector.nvml import topology as nvml_topology
from envcheck.collector.probes import nvml
from envcheck.collector.runtime.context import Context
from envcheck.collector.smi.document import read_file
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import Gpu, Nvml

FUNCTIONS = list(LETTERS)


@pytest.fixture(autouse=True)
def same_pynvml_afterwards() -> Iterator[None]:
    before = sys.modules.get("pynvml")
    yield
    sys.modules.pop("pynvml", None)
    if before is not None:
        sys.modules["pynvml"] = before


def two(*first: str, base: str = "h100", driver: str = "", **values: Any) -> Machine:
    """Two GPUs. ``first``: rows that come before all others; keyword arguments change the first GPU."""
    made = BASES[base]()
    made.gpus = made.gpus[:2]
    made.nvml_first += first
    made.driver = driver or made.driver
    made.gpu(0).change(**values)
    return made


def collect(
    machine: Machine | None = None,
    root: str = "/nonexistent",
    lacks: tuple[str, ...] = (),
    unknown: tuple[str, ...] = (),
) -> Nvml:
    """The probe's facts, as the Snapshot's types; ``lacks``: functions that libnvidia-ml does not have,
    ``unknown``: those that this pynvml does not know."""
    module = nvml_face.module(nvml_rows(machine or two()), lacks)
    for name in unknown:
        delattr(module, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvml, "load", lambda path: module)
        facts = nvml.collect(Context({}, root=root, params={"pynvml": "/x/pynvml.py"}))
    known = {f"gpus.{name}" for name in Gpu.__struct_fields__} | set(facts.values)
    assert set(facts.sources) - {"*"} <= known
    return msgspec.json.decode(dumps(facts.values).encode(), type=Nvml)


def gpus(facts: Nvml) -> list[Gpu]:
    assert isinstance(facts.gpus, list)
    return facts.gpus


def first(*rows: str, driver: str = "", **values: Any) -> Gpu:
    return gpus(collect(two(*rows, driver=driver, **values)))[0]


def code(number: int, function: str, key: str = "*", handle: str = "1") -> str:
    return f"{handle} {function} {key} {number} -"


def field(number: int, value: int) -> str:
    kind, blob = struct.pack("=I", 3), struct.pack("=Q", value)
    return f"1 nvmlDeviceGetFieldValues {number},0 0 - {kind.hex()} {blob.hex()}"


def reason(fact: Any) -> str:
    assert isinstance(fact, Unavailable), fact
    return fact.unavailable


@pytest.mark.parametrize("base", BASES)
def test_nvml_and_nvidia_smi_agree_about_a_machine(base: str, tmp_path: Path) -> None:
    machine = BASES[base]()
    (tmp_path / "smi.xml").write_text(smi.document(machine.driver, machine.cuda, machine.gpus))
    compared = 0
    for one, other in zip(
        gpus(collect(machine)), read_file(str(tmp_path / "smi.xml"))["gpus"], strict=True
    ):
        asked = msgspec.to_builtins(one)
        for name in set(asked) & set(other) - {"mig_instances"}:  # which have no UUID there
            if not isinstance(other[name], dict) and not isinstance(asked[name], dict):
                assert asked[name] == other[name], name
                compared += 1
    assert compared > 40 * len(machine.gpus)


def test_a_healthy_machine() -> None:
    facts = collect()
    assert (facts.init_code, facts.driver_version, facts.cuda_version) == (0, "570.86.15", "12.8")
    assert (facts.gpu_count, facts.lost) == (2, [])
    one, other = gpus(facts)
    assert (one.index, one.pci_address, one.compute_capability) == (0, "0000:18:00.0", "9.0")
    assert (other.index, other.pci_address) == (1, "0000:2a:00.0")
    assert isinstance(facts.pairs, list)
    assert [(p.first, p.second, p.level, p.p2p_read) for p in facts.pairs] == [
        ("0000:18:00.0", "0000:2a:00.0", "NODE", "ok")
    ]
    # A misspelt function would look like an old driver.
    missing = {
        name for name in Gpu.__struct_fields__ if isinstance(getattr(one, name), Unavailable)
    }
    assert missing == {
        "driver_model", "vgpu_licence", "retired_single_bit", "retired_double_bit", "retired_pending",
        "drain_and_reset_recommended", "pcie_gen_max_host", "stopped",
    }  # fmt: skip


def test_every_field_of_a_gpu_is_asked_for() -> None:
    rows = [*nvml_gpu.FUNCTIONS, *nvml_gpu.GROUPS, *nvml_gpu.FIELD_VALUES]
    named = [name for row in rows for name in row[0].split()]
    assert len(named) == len(set(named))
    # NVML has no function for the first; the index is the position.
    assert set(Gpu.__struct_fields__) - set(named) == {"pcie_gen_max_host", "index", "stopped"}


def test_a_lost_gpu_is_named_by_what_the_module_lists(tmp_path: Path) -> None:
    lost = two(code(15, "nvmlDeviceGetHandleByIndex_v2", "1", "0"))
    for gpu in lost.gpus:
        (tmp_path / "proc/driver/nvidia/gpus" / gpu.address).mkdir(parents=True)
    facts = collect(lost, root=str(tmp_path))
    assert facts.gpu_count == 2 and [gpu.index for gpu in gpus(facts)] == [0]
    (one,) = facts.lost
    assert (one.index, one.code, one.pci_address) == (1, 15, "0000:2a:00.0")
    assert "lost" in str(one.error)
    assert reason(collect(lost).lost[0].pci_address) == "not-collected"


def test_two_lost_gpus_get_no_guessed_address(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia/gpus/0000:18:00.0").mkdir(parents=True)
    facts = collect(two(code(999, "nvmlDeviceGetHandleByIndex_v2", handle="0")), str(tmp_path))
    assert gpus(facts) == []
    assert [(gpu.code, reason(gpu.pci_address)) for gpu in facts.lost] == [
        (999, "not-collected")
    ] * 2


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (2, "not-supported"), (3, "not-supported"), (13, "not-supported"), (25, "not-supported"),
        (26, "not-supported"), (4, "no-permission"), (15, "lost"), (10, "timeout"), (6, "absent"),
        (16, "error"), (17, "error"), (999, "error"), (12345, "error"),
    ],
)  # fmt: skip
def test_what_an_nvml_error_means(number: int, expected: str) -> None:
    gpu = first(code(number, "*"))
    for name in set(Gpu.__struct_fields__) - {"index", "pcie_gen_max_host", "stopped"}:
        assert reason(getattr(gpu, name)) == expected, name
    if expected == "error":
        assert f"NVML error {number}" in gpu.name.detail  # type: ignore[union-attr]


def test_one_failing_function_costs_its_own_facts_alone() -> None:
    gpu = first(code(999, "nvmlDeviceGetRemappedRows"))
    assert reason(gpu.remap_pending) == reason(gpu.remap_correctable) == "error"
    assert gpu.ecc_enabled is True


def test_a_pynvml_that_knows_almost_nothing() -> None:
    kept = ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName")
    module = nvml_face.module([])
    unknown = (name for name in dir(module) if re.match("nvml(Device|System)Get", name))
    facts = collect(unknown=tuple(name for name in unknown if name not in kept))
    gpu = gpus(facts)[0]
    assert gpu.name == "NVIDIA H100 80GB HBM3"
    assert (
        reason(gpu.uuid) == reason(gpu.nvlinks) == reason(facts.driver_version) == "not-supported"
    )
    assert facts.pairs == []  # without addresses there are none to name
    unusable = collect(unknown=("nvmlDeviceGetCount",))
    assert "pynvml cannot be used" in unusable.init_code.detail  # type: ignore[union-attr]


def test_old_names_of_functions_are_found() -> None:
    old = collect(
        two(reasons=["sw_power_cap", "hw_thermal_slowdown"]),
        lacks=("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetMemoryInfo_v2"),
    )
    assert gpus(old)[0].clock_event_reasons == ["sw_power_cap", "hw_thermal_slowdown"]
    assert gpus(old)[0].memory_total_mib == 81559
    broken = first(code(999, "nvmlDeviceGetMemoryInfo_v2"))
    assert reason(broken.memory_total_mib) == "error"


@pytest.mark.parametrize(
    ("number", "words"),
    [(9, "Driver Not Loaded"), (18, "version mismatch"), (999, "Unknown Error")],
)
def test_an_nvml_that_does_not_start(number: int, words: str) -> None:
    facts = collect(two(code(number, "nvmlInit", handle="0")))
    assert facts.init_code == number and words in str(facts.init_error)
    for name in ("driver_version", "cuda_version", "gpu_count", "gpus", "pairs"):
        assert reason(getattr(facts, name)) == "error"
        assert f"NVML error {number}" in getattr(facts, name).detail


def test_no_library_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "LIBRARY", "libnvidia-ml-that-no-machine-has.so")
    facts = collect(two(code(12, "nvmlInit", handle="0")))
    assert facts.init_code == 12
    assert reason(facts.library_path) == "absent"


def test_the_library_is_the_mapped_one(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/maps").write_text(
        "7f00-7f01 r-xp 00000000 08:01 1    /usr/lib/libc.so.6\n"
        "7f02-7f03 r-xp 00000000 08:01 2    /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.590.48.01\n"
        "7f04-7f05 rw-p 00000000 00:00 0\n"
    )
    facts = collect(root=str(tmp_path))
    assert facts.library_path == "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.590.48.01"


def test_a_machine_whose_devices_cannot_be_counted() -> None:
    facts = collect(two(code(999, "nvmlDeviceGetCount_v2", handle="0")))
    assert facts.init_code == 0
    assert reason(facts.gpu_count) == reason(facts.gpus) == reason(facts.pairs) == "error"
    none = BASES["h100"]()
    none.gpus = []
    assert gpus(collect(none)) == []


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


def test_pairs_are_few_and_in_the_order_of_their_addresses() -> None:
    binding = nvml_binding.Binding(nvml_face.module(nvml_rows(two())))
    opened = [(binding.call("nvmlDeviceGetHandleByIndex", 0), "0000:0a:00.0")]
    opened.append((binding.call("nvmlDeviceGetHandleByIndex", 1), "0000:09:00.0"))
    (pair,) = nvml_topology.pairs(binding, opened)
    assert (pair["first"], pair["second"], pair["level"]) == (
        "0000:09:00.0",
        "0000:0a:00.0",
        "NODE",
    )
    many = [(opened[0][0], f"0000:{n:02x}:00.0") for n in range(17)]
    assert nvml_topology.pairs(binding, many)["unavailable"] == "not-collected"
    assert len(nvml_topology.pairs(binding, many[:16])) == 120


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (None, "FileNotFoundError"),
        ("import no_such_module_at_all", "no_such_module_at_all"),
        ("print 'python 2'", "SyntaxError"),
        ("nvmlInit = 1", "nvmlDeviceGetCount"),
        ("raise RuntimeError('broken')", "broken"),
    ],
)
def test_a_pynvml_that_cannot_be_used(tmp_path: Path, source: str | None, words: str) -> None:
    path = tmp_path / "pynvml.py"
    if source is not None:
        path.write_text(source)
    facts = nvml.collect(Context({}, params={"pynvml": str(path)}))
    seen = msgspec.json.decode(dumps(facts.values).encode(), type=Nvml)
    for fact in (seen.init_code, seen.gpus, seen.driver_version):
        assert reason(fact) == "error" and words in fact.detail  # type: ignore[union-attr]


ROWS = nvml_rows(two())


@settings(max_examples=30)
@given(st.data())
def test_whatever_nvml_answers_is_a_snapshot(data: st.DataObject) -> None:
    odd = []
    for row in data.draw(st.lists(st.sampled_from(ROWS), max_size=12)):
        handle, name, key, _code, when, *blobs = row.split()
        number = data.draw(st.sampled_from([0, 0, 1, 4, 7, 9, 15, 999, 12345]))
        changed = [
            data.draw(st.binary(min_size=size, max_size=size)).hex() if size else "-"
            for size in (0 if ":" in blob else len(blob) // 2 for blob in blobs)
        ]
        odd.append(" ".join([handle, name, key, str(number), when, *changed]))
    assert collect(two(*odd)).init_code is not None


@pytest.mark.parametrize(
    ("call", "lost"), [("nvmlDeviceGetPowerUsage", False), ("nvmlDeviceGetHandleByIndex", True)]
)
@pytest.mark.parametrize("ends", ["hangs", "crashes"])
def test_a_call_that_hangs_costs_its_gpu_alone(
    call: str, lost: bool, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = nvml_face.module(nvml_rows(two()))
    answer = getattr(module, call)
    first_handle = module.nvmlDeviceGetHandleByIndex(0)
    stop = 0 if lost else first_handle

    def stuck(asked: Any) -> Any:
        if asked == stop or (not lost and bytes(asked) == bytes(first_handle)):
            if ends == "crashes":
                os.kill(os.getpid(), signal.SIGSEGV)
            time.sleep(60)
        return answer(asked)

    setattr(module, call, stuck)
    monkeypatch.setattr(nvml, "load", lambda path: module)
    monkeypatch.setattr(nvml, "LIMIT", 0.3)
    params = {"pynvml": "/x/pynvml.py"}
    values = nvml.collect(Context({}, root="/nonexistent", params=params)).values
    facts = msgspec.json.decode(dumps(values).encode(), type=Nvml)
    assert facts.gpu_count == 2
    assert gpus(facts)[-1].index == 1
    assert not [
        name for name, fact in values["gpus"][-1].items() if "power" in name and fact is None
    ]
    if lost:
        assert [(one.index, one.code) for one in facts.lost] == [
            (0, 10 if ends == "hangs" else 999)
        ]
        assert call in facts.lost[0].error
    else:
        hung = gpus(facts)[0]
        assert hung.name == "NVIDIA H100 80GB HBM3"
        assert reason(hung.power_draw_w) == ("timeout" if ends == "hangs" else "error")
        assert isinstance(hung.power_draw_w, Unavailable)
        assert call in hung.power_draw_w.detail
        assert reason(hung.power_limit_w) == "not-collected"
    assert facts.pairs == []
