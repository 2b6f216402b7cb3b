"""The driver API's ctypes layer against a libcuda that needs no GPU."""

from __future__ import annotations

import ctypes
from pathlib import Path

import kernel_shims
import probing
import pytest

from envcheck.collector.cuda.libcuda import CudaError
from envcheck.collector.kernels.driver import Driver, JitError, is_out_of_memory


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("libcuda")
    return probing.compile_library(kernel_shims.CUDA, folder, "libcuda.so.1")


@pytest.fixture
def driver(library: Path) -> Driver:
    made = Driver(str(library))
    made.open()
    return made


# -- the ctypes layer


def test_a_device_s_facts(driver: Driver) -> None:
    assert driver.capability == (8, 0) and driver.multiprocessors == 4
    assert driver.facts() == {
        "name": "NVIDIA shim",
        "compute_capability": "8.0",
        "multiprocessors": 4,
        "clock_max_mhz": 1410.0,
        "memory_free_mib": 20480,
        "driver_api_version": "12.2",
        "uuid": "GPU-" + "ab" * 4 + "-abab" * 3 + "-" + "ab" * 6,
        "pci_address": "0000:0a:00.0",
    }


def test_memory_travels_in_64_bits(driver: Driver) -> None:
    pointer = driver.allocate(1000)
    assert pointer > 1 << 46
    driver.fill(pointer, 0x5A, 1000)
    driver.upload(pointer, b"\0one\0two", offset=16)
    assert driver.download(pointer, 10, offset=15) == b"\x5a\0one\0two\x5a"
    assert driver.cuda.library.held_allocations() == 1
    driver.free(pointer)
    assert driver.cuda.library.held_allocations() == 0


def test_events_programs_and_launches(driver: Driver) -> None:
    first, second = driver.event(), driver.event()
    driver.record(first)
    module = driver.load(driver.link(".version 6.0\n"))
    function = module.function("rate")
    shared = driver.whole_multiprocessor(function)
    assert shared == 166912 - 12288
    results = driver.allocate(2 * 24)
    arguments = [ctypes.c_uint64(value) for value in (0, results, 0)] + [ctypes.c_uint32(1000)]
    driver.launch(function, (2,), 32, arguments, shared)
    driver.record(second)
    driver.query(second)
    assert driver.query(second)
    driver.wait(second)
    driver.synchronize()
    assert driver.elapsed(first, second) == pytest.approx(512e-6)
    assert driver.download(results, 48)[16:24] == bytes(8)
    driver.destroy_event(first)
    assert driver.alive()
    driver.close()
    driver.close()


def test_ptx_that_is_refused_is_told_in_the_driver_s_words(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHIM_REFUSE", ".version 8.4")
    with pytest.raises(JitError) as caught:
        driver.link(".version 8.4\n")
    assert caught.value.code == 222
    assert str(caught.value) == (
        "cuLinkAddData_v2: CUDA_ERROR_UNSUPPORTED_PTX_VERSION "
        "(ptxas application ptx input, line 1; fatal   : Unsupported .version)"
    )
    assert driver.link(".version 8.3\n") == b".version 8.3\n\0"


def test_failures_have_the_function_s_and_the_error_s_name(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHIM_FAIL", "cuMemAlloc_v2:2:1")
    with pytest.raises(CudaError, match="cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY") as caught:
        driver.allocate(1)
    assert is_out_of_memory(caught.value) and not is_out_of_memory(ValueError("2"))
    monkeypatch.setenv("SHIM_FAIL", "cuEventQuery:719:1")
    with pytest.raises(CudaError, match="cuEventQuery: CUDA_ERROR_LAUNCH_FAILED"):
        driver.query(driver.event())
    monkeypatch.setenv("SHIM_NO_OPTIN", "1")
    function = driver.load(b"image").function("rate")
    assert driver.whole_multiprocessor(function) == (48 << 10) - 12288
    monkeypatch.setenv("SHIM_FAIL", "cuCtxSynchronize:700:1")
    assert not driver.alive()


def test_no_libcuda_and_no_device(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CudaError, match=r"dlopen: /nonexistent/libcuda\.so\.1: cannot open"):
        Driver("/nonexistent/libcuda.so.1")
    monkeypatch.setenv("SHIM_FAIL", "cuDevicePrimaryCtxRetain:2:1")
    with pytest.raises(CudaError, match="cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY"):
        Driver(str(library)).open()
