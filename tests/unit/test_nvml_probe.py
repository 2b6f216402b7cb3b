"""The NVML probe on nvidia-ml-py itself, whose library answers for the described machine."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nvml_asked import code, collect, first, gpus, two
from world import nvml_face, smi
from world.bases import BASES
from world.kernel_tree import reason
from world.machine import nvml_rows

from envcheck.collector.facts import dumps
from envcheck.collector.nvml import binding as nvml_binding
from envcheck.collector.nvml import gpu as nvml_gpu
from envcheck.collector.nvml import topology as nvml_topology
from envcheck.collector.probes import nvml
from envcheck.collector.runtime.context import Context
from envcheck.collector.smi.document import read_file
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import Gpu, Nvml


@pytest.fixture(autouse=True)
def same_pynvml_afterwards() -> Iterator[None]:
    before = sys.modules.get("pynvml")
    yield
    sys.modules.pop("pynvml", None)
    if before is not None:
        sys.modules["pynvml"] = before


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
    monkeypatch.setattr(nvml, "LIMIT", 0.3 if ends == "hangs" else 60.0)
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
