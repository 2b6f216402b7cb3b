"""The NVML probe through the real nvidia-ml-py, against a libnvidia-ml that needs no GPU."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import msgspec
import probing
import pytest
from world import folder

from envcheck.collector.facts import dumps
from envcheck.facts.gpu import Nvml

THIS = sys.version_info[1]
pynvml = pytest.importorskip("pynvml")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = folder.put(tmp_path_factory.mktemp("nvml"), ["libnvidia-ml.so.1"])
    machine = folder.h200(2)
    one, other = machine.gpus
    one.change(
        used_mib=7,
        dram_corrected=(0, 1),
        dram_uncorrected=(0, (1 << 33) + 1),
        sram_exceeded=True,
        retired=(3, 0, True),
        remap=(1, 2, True, False),
        repair=(True, False),
        recovery_action=1,
        licence=True,
        licence_expiry={
            "year": 2026,
            "month": 7,
            "day": 7,
            "hour": 16,
            "min": 1,
            "sec": 44,
            "status": 2,
        },
        processes=[(42, 512)],
    )
    one.links[0]["errors"] = {"crc": 2}
    other.change(mig=(True, True), mig_instances=[{"gi": 5, "uuid": "1", "sms": 16, "mib": 9984}])
    machine.p2p = 5
    folder.describe(machine, made)
    return made


def facts_of(libraries: Path, minor: int = THIS, path: str = pynvml.__file__) -> Nvml:
    python, variables = probing.interpreter(minor), folder.variables(libraries, libraries)
    answer = probing.facts(python, "nvml", {"pynvml": path}, **variables)
    assert answer["sources"]["gpus.uuid"] == "nvmlDeviceGetUUID"
    return msgspec.json.decode(dumps(answer["facts"]).encode(), type=Nvml)


@pytest.mark.parametrize("minor", [THIS, 6])
def test_structures_travel_through_the_real_binding(libraries: Path, minor: int) -> None:
    facts = facts_of(libraries, minor)
    assert (facts.init_code, facts.driver_version, facts.cuda_version) == (0, "570.86.15", "12.8")
    assert facts.library_path == str(libraries.resolve() / "libnvidia-ml.so.1")
    assert isinstance(facts.gpus, list)
    one, other = facts.gpus
    assert (one.pci_address, other.pci_address) == ("0000:83:00.0", "0000:84:00.0")
    assert (one.name, one.architecture, one.compute_capability) == ("NVIDIA H200", "Hopper", "9.0")
    assert (one.memory_total_mib, one.memory_used_mib, one.memory_free_mib) == (
        143771,
        7,
        143771 - 551 - 7,
    )
    assert (one.ecc_corrected_aggregate, one.ecc_uncorrected_aggregate) == (1, (1 << 33) + 1)
    assert one.sram_threshold_exceeded is True
    assert (one.retired_single_bit, one.retired_double_bit) == (3, 0)
    assert (one.remap_correctable, one.remap_uncorrectable) == (1, 2)
    assert (one.remap_pending, one.remap_failed) == (True, False)
    assert (one.channel_repair_pending, one.tpc_repair_pending) == (True, False)
    assert (one.fabric_state, one.fabric_status, one.fabric_health) == (
        "Completed",
        "Success",
        "Healthy",
    )
    assert (one.memory_temperature_c, one.recovery_action) == (41, "Reset")
    assert one.vgpu_licence == "Licensed (Expiry: 2026-7-7 16:1:44 GMT)"
    assert isinstance(one.processes, list)
    assert [(p.pid, p.kind, p.name, p.memory_mib) for p in one.processes] == [
        (42, "C", "/usr/bin/python3", 512)
    ]
    assert isinstance(one.nvlinks, list)
    assert [link.link for link in one.nvlinks] == list(range(18))
    assert (one.nvlinks[0].replay_errors, one.nvlinks[0].crc_errors) == (0, 2)
    assert (one.mig_instances, one.mig_enabled) == ([], False)
    assert isinstance(other.mig_instances, list)
    (instance,) = other.mig_instances
    assert (instance.gpu_instance, instance.multiprocessors, instance.memory_mib) == (5, 16, 9984)
    assert isinstance(facts.pairs, list)
    assert [(p.level, p.p2p_read) for p in facts.pairs] == [("NODE", "not supported")]


@pytest.mark.parametrize("minor", [THIS, 6])
def test_a_pynvml_inside_a_zip(libraries: Path, tmp_path: Path, minor: int) -> None:
    with zipfile.ZipFile(tmp_path / "collector.pyz", "w") as archive:
        archive.write(pynvml.__file__, "envcheck/collector/vendor/pynvml.py")
    inside = str(tmp_path / "collector.pyz/envcheck/collector/vendor/pynvml.py")
    facts = facts_of(libraries, minor, inside)
    assert facts.init_code == 0
