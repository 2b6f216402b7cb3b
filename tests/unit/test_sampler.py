"""The sampler of clocks through a binding that answers by a table."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pynvml
import pytest

from envcheck.collector.facts import is_unavailable
from envcheck.collector.kernels import sampler
from envcheck.collector.kernels.nvml_device import within
from envcheck.collector.nvml.binding import NotThere

PYNVML = """
class NVMLError(Exception):
    def __init__(self, value):
        self.value = value
    def __str__(self):
        return "words of %d" % self.value

clocks = [1980, 1700, 1755]
masks = [4, 0, 9]
asked = []

def nvmlInit():
    pass
def nvmlDeviceGetHandleByPciBusId(address):
    return "GPU at " + address.decode()
def nvmlDeviceGetHandleByUUID(uuid):
    return uuid.decode()
def nvmlDeviceGetGpuInstanceId(mig):
    return {"MIG-1": 5}[mig]
def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig):
    return "parent of " + mig
def nvmlDeviceGetClockInfo(handle, kind):
    assert (handle, kind) == ("GPU at 0000:83:00.0", 1)
    return clocks.pop(0)
def nvmlDeviceGetCurrentClocksEventReasons(handle):
    return masks.pop(0)
def nvmlDeviceGetPowerUsage(handle):
    asked.append(handle)
    raise NVMLError(3)
def nvmlDeviceGetTemperature(handle, sensor):
    raise NVMLError(4)
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(sys.modules, "pynvml", pynvml)  # put back afterwards
    file = tmp_path / "pynvml.py"
    file.write_text(PYNVML)
    return str(file)


def test_facts(path: str) -> None:
    watched = sampler.Sampler(path, "0000:83:00.0", "GPU-1")
    assert is_unavailable(watched.facts()["clock_mhz"])
    for _ in range(3):
        watched.sample()
    facts = watched.facts()
    assert (facts["clock_mhz"], facts["clock_source"]) == (1755.0, "NVML")
    assert facts["clock_event_reasons"] == ["gpu_idle", "sw_power_cap", "hw_slowdown"]
    assert facts["power_w"] == {"unavailable": "not-supported"}
    assert facts["temperature_c"]["unavailable"] == "no-permission"
    assert len(watched._device.nvml.module.asked) == 1  # what is not there is asked for once
    watched.reset()
    assert watched.facts()["clock_mhz"]["unavailable"] == "not-collected"
    assert watched.facts()["power_w"] == {"unavailable": "not-supported"}


def test_a_library_that_hangs_holds_up_no_product(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = sampler.Sampler(path, "0000:83:00.0", None)
    watched.sample()
    end = threading.Event()
    asked = []

    def hang(_functions: object, *arguments: object) -> int:
        asked.append(arguments)
        end.wait()
        return 1

    monkeypatch.setattr(watched._device.nvml, "first", hang)
    monkeypatch.setattr(sampler, "_PATIENCE", 0.01)
    watched.sample()
    watched.sample()
    end.set()
    assert len(asked) == 1, "what hangs is not asked again"
    assert watched.facts()["clock_mhz"] == 1980.0, "what was seen before stays"
    watched.reset()
    assert watched.facts()["clock_mhz"]["unavailable"] == "timeout"
    end.clear()
    with pytest.raises(NotThere, match=r"no answer within 0\.01 s"):
        within(0.01, end.wait)
    end.set()
