"""What is asked of one GPU, and what is believed of the process that asks: on a pynvml without a driver."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace as Struct
from typing import Any

import pytest
from children import Clock
from pynvml import NVMLError

from envcheck.collector.nvml.binding import Binding
from envcheck.collector.telemetry.quantities import NAMES, GpuAsked, Lost
from envcheck.collector.telemetry.telemetry import Telemetry
from envcheck.collector.worker import messages
from envcheck.collector.worker.parent import Limits, Worker
from envcheck.collector.worker.pipes import MOST, LinePipe


class Answers:
    """A module whose functions are counted; what it lacks is not supported."""

    NVMLError = NVMLError

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self.asked: dict[str, int] = {}
        for name, function in functions.items():
            setattr(self, name, self._counted(name, function))

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.asked[name] = self.asked.get(name, 0) + 1
            return function(*arguments)

        return call


def failing(code: int) -> Callable[..., Any]:
    def call(*_arguments: Any) -> Any:
        raise NVMLError(code)

    return call


def asked(module: Answers, clock: Clock | None = None, **more: Any) -> GpuAsked:
    return GpuAsked(Binding(module), 1, clock=clock or Clock(), **more)


def value(one: GpuAsked, name: str) -> Any:
    return one.sample()[NAMES.index(name)]


def test_what_a_gpu_does_not_have_is_asked_for_once() -> None:
    module = Answers(nvmlDeviceGetPowerUsage=failing(3), nvmlDeviceGetTemperature=lambda *_: 40)
    one = asked(module)
    for _sample in range(5):
        assert value(one, "power_w") is None and value(one, "temperature_c") == 40
    assert module.asked["nvmlDeviceGetPowerUsage"] == 1


@pytest.mark.parametrize("code", [15, 16])
@pytest.mark.parametrize("function", ["sample", "errors"])
def test_a_lost_gpu_is_no_missing_value(code: int, function: str) -> None:
    module = Answers(
        nvmlDeviceGetPowerUsage=failing(code), nvmlDeviceGetTotalEccErrors=failing(code)
    )
    with pytest.raises(Lost):
        getattr(asked(module), function)()


def test_the_links_rate_is_that_of_its_counter() -> None:
    clock = Clock()
    number = [0]
    module = Answers(
        nvmlDeviceGetFieldValues=lambda _handle, _ids: [
            Struct(nvmlReturn=0, valueType=3, value=Struct(ullVal=number[0]))
        ]
    )
    setattr(module, "NVML_FI_DEV_PCIE_COUNT_RX_BYTES", 198)  # noqa: B010
    one = asked(module, clock)
    assert value(one, "pcie_rx_mb_s") is None
    number[0], clock.now = 24_000_000_000, clock.now + 2
    assert value(one, "pcie_rx_mb_s") == 12_000.0
    number[0], clock.now = 5, clock.now + 2  # it began anew
    assert value(one, "pcie_rx_mb_s") is None


def test_processes_that_descend_from_ours_are_no_others(tmp_path: Path) -> None:
    for pid, parent in ((50, 40), (40, 7), (60, 30), (30, 1)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (b) c) S {parent} 0 0")
    running = [Struct(pid=pid) for pid in (50, 60, 99)]
    module = Answers(nvmlDeviceGetComputeRunningProcesses_v3=lambda _handle: running)
    assert value(asked(module, ours=7, proc=str(tmp_path)), "other_processes") == 2


def test_xids_are_read_until_there_are_no_more() -> None:
    events = [Struct(eventType=8, eventData=63), Struct(eventType=8, eventData=94)]

    def wait(_set: Any, milliseconds: int) -> Any:
        assert milliseconds == 0
        if not events:
            raise NVMLError(10)
        return events.pop(0)

    module = Answers(
        nvmlEventSetCreate=lambda: "set",
        nvmlDeviceRegisterEvents=lambda _handle, kinds, _set: None,
        nvmlEventSetWait_v2=wait,
    )
    one = asked(module)
    assert one.watch_xids() and one.xids() == [63, 94] and one.xids() == []
    assert asked(Answers()).watch_xids() is False and asked(Answers()).xids() == []


def telemetry(lines: list[Any]) -> Telemetry:
    """One that gets these messages: (kind, place, seconds, value)."""
    one = Telemetry(lambda *_arguments: None)
    one._samples = {"a": [], "b": []}
    data = [
        messages.MARK + line
        if isinstance(line, bytes)
        else messages.MARK + json.dumps({"result": line[1:], "of": line[0]}).encode()
        for line in lines
    ]
    child = Struct(poll=lambda: None)
    pipe = Struct(lines=lambda: data, close=lambda: None)
    one._worker = Worker(child, Limits(), one.take, pipe)
    return one


NOTHING = [None] * len(NAMES)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"{}",
        b"[" * 100_000,
        b'["sample", 0, NaN, []]',
        ["sample", 0, 1.0, []],
        ["sample", 2, 1.0, NOTHING],
        ["sample", "a", 1.0, NOTHING],
        ["sample", 0, None, NOTHING],
        ["sample", 0, float("inf"), NOTHING],
        ["sample", 0, 1.0, ["x"] * len(NAMES)],
        ["sample", 0, 1.0, [True] * len(NAMES)],
        ["sample", 0, 1.0, [1e300] * len(NAMES)],
        ["errors", 0, 1.0, {"unknown": 1}],
        ["errors", 0, 1.0, {"pcie_width": "x"}],
        ["xid", 0, 1.0, "63"],
        ["lost", 0, 1.0, 5],
        [[], 0, 1.0, 5],
    ],
)
def test_a_line_that_is_no_sample_is_dropped(line: Any) -> None:
    one = telemetry([line, ["sample", 1, 2.0, NOTHING]])
    assert one.poll() == [("sample", "b", 2.0, NOTHING)]


def test_a_pipe_gives_whole_lines_and_leaves_out_those_that_have_no_end() -> None:
    pipe = LinePipe()
    try:
        writer = os.open(pipe.path, os.O_WRONLY)
        os.write(writer, b"one\ntw")
        assert pipe.lines() == [b"one"]
        os.write(writer, b"o\n")
        assert pipe.lines() == [b"two"]
        for _part in range(3):
            os.write(writer, b"x" * (MOST // 2 + 1))
            assert pipe.lines() == []
        os.write(writer, b"x\nthree\n")
        assert pipe.lines() == [b"three"]
        os.close(writer)
    finally:
        pipe.close()
    assert not Path(pipe.path).exists() and pipe.lines() == []
