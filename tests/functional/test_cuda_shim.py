"""The CUDA probe through the real loader, against a libcuda that needs no GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import probing
import pytest
from probing import why
from world import folder

from envcheck.collector.facts import dumps
from envcheck.facts.gpu import CudaDriver

THIS = sys.version_info[1]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder.put(tmp_path_factory.mktemp("cuda"), ["libcuda.so.1"])


def facts_of(
    libraries: Path, minor: int = THIS, init: str = "0 -", **environment: str
) -> CudaDriver:
    machine = folder.h200(2)
    machine.cuda_init = init
    variables = folder.variables(libraries, folder.describe(machine, libraries))
    answer = probing.facts(probing.interpreter(minor), "cuda", {}, **variables, **environment)
    assert "without CUDA_VISIBLE_DEVICES" in answer["sources"]["*"]
    return msgspec.json.decode(dumps(answer["facts"]).encode(), type=CudaDriver)


@pytest.mark.parametrize("minor", [THIS, 6])
def test_a_machine_with_two_devices(libraries: Path, minor: int) -> None:
    facts = facts_of(libraries, minor, SHIM_CHATTY="1")
    assert (facts.init_code, facts.init_name) == (0, "CUDA_SUCCESS")
    assert (facts.driver_api_version, facts.device_count) == ("12.8", 2)
    assert isinstance(facts.devices, list)
    assert [(d.ordinal, d.name, d.pci_address, d.compute_capability) for d in facts.devices] == [
        (0, "NVIDIA H200", "0000:83:00.0", "9.0"),
        (1, "NVIDIA H200", "0000:84:00.0", "9.0"),
    ]
    assert facts.devices[1].uuid == "GPU-abababab-abab-abab-abab-ababababab" + "ac"


def test_the_user_s_choice_of_devices_hides_none(libraries: Path) -> None:
    assert facts_of(libraries, CUDA_VISIBLE_DEVICES="").device_count == 2


@pytest.mark.parametrize(
    ("code", "name"),
    [(999, "CUDA_ERROR_UNKNOWN"), (802, "CUDA_ERROR_SYSTEM_NOT_READY"), (34, "CUDA_ERROR_STUB_LIBRARY"),
     (4242, "CUresult 4242")],
)  # fmt: skip
def test_a_failing_cuinit(libraries: Path, code: int, name: str) -> None:
    facts = facts_of(libraries, init=f"{code} -")
    assert (facts.init_code, facts.init_name, facts.driver_api_version) == (code, name, "12.8")
    assert why(facts.device_count) == why(facts.devices) == ("error", f"cuInit: {name} ({code})")


def test_a_libcuda_of_an_old_driver(tmp_path: Path) -> None:
    folder.put(tmp_path, ["libcuda.so.1"], "cuda", "OLD")
    facts = facts_of(tmp_path)
    assert isinstance(facts.devices, list)
    assert str(facts.devices[0].uuid).startswith("GPU-ab")
    assert facts_of(tmp_path, init="803 -").init_name == "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"


def test_a_library_that_is_no_libcuda(tmp_path: Path) -> None:
    facts = facts_of(folder.put(tmp_path, ["libcuda.so.1"], source="empty"))
    assert why(facts.init_code) == ("error", "cuInit: this libcuda does not have it")
    assert why(facts.driver_api_version)[0] == "not-supported"
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/libcuda.so.1").write_text("not an ELF file")
    facts = facts_of(tmp_path / "broken")
    assert why(facts.library_path)[0] == "error"
    assert "libcuda.so.1" in str(facts.load_error)
