"""The NVML probe through the real nvidia-ml-py, against a libnvidia-ml that needs no GPU."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import probing
import pytest
import shims

from envcheck.collector.facts import dumps
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import Nvml

THIS = sys.version_info[1]
pynvml = pytest.importorskip("pynvml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nvml")
    probing.compile_library(shims.NVML, made, "libnvidia-ml.so.1")
    return made


def asked(folder: Path, minor: int = THIS, path: str = pynvml.__file__, **environment: str) -> Nvml:
    answer = probing.facts(
        probing.interpreter(minor),
        "nvml",
        {"pynvml": path},
        LD_LIBRARY_PATH=str(folder),
        **environment,
    )
    listed = isinstance(answer["facts"]["gpus"], list)
    assert answer["sources"].get("gpus.uuid") == ("nvmlDeviceGetUUID" if listed else None)
    return msgspec.json.decode(dumps(answer["facts"]).encode(), type=Nvml)


def why(fact: Any) -> tuple[str, str]:
    assert isinstance(fact, Unavailable), fact
    return fact.unavailable, fact.detail


@pytest.mark.parametrize("minor", [THIS, 6])
def test_structures_travel_through_the_real_binding(folder: Path, minor: int) -> None:
    facts = asked(folder, minor, SHIM_RECOVERY="1")
    assert (facts.init_code, facts.driver_version, facts.cuda_version) == (0, "590.48.01", "13.1")
    assert facts.library_path == str(folder.resolve() / "libnvidia-ml.so.1")
    assert isinstance(facts.gpus, list)
    one, other = facts.gpus
    assert (one.pci_address, other.pci_address) == ("0000:83:00.0", "0000:84:00.0")
    assert (one.name, one.architecture, one.compute_capability) == ("NVIDIA H200", "Hopper", "9.0")
    assert (one.memory_total_mib, one.memory_used_mib, one.memory_free_mib) == (143771, 7, 143150)
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
    assert (one.memory_temperature_c, one.recovery_action) == (32, "Reset")
    assert why(one.reset_required)[0] == "not-supported"
    assert one.gsp_firmware == "590.48.01"
    assert one.vgpu_licence == "Licensed (Expiry: 2026-7-7 16:1:44 GMT)"
    assert isinstance(one.processes, list)
    assert [(p.pid, p.kind, p.name, p.memory_mib) for p in one.processes] == [
        (42, "C", "python", 512)
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
def test_a_pynvml_inside_a_zip(folder: Path, tmp_path: Path, minor: int) -> None:
    with zipfile.ZipFile(tmp_path / "collector.pyz", "w") as archive:
        archive.write(pynvml.__file__, "envcheck/collector/vendor/pynvml.py")
    inside = str(tmp_path / "collector.pyz/envcheck/collector/vendor/pynvml.py")
    facts = asked(folder, minor, path=inside)
    assert facts.init_code == 0
