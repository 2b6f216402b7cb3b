"""Minutes of a soak: samples put together, minutes merged, what a GPU's process tells, and durations."""

from __future__ import annotations

import argparse
from types import SimpleNamespace as Struct
from typing import Any

import msgspec
import pytest
from soak_runs import minute

from envcheck.checks.soak.minute import failures
from envcheck.cli.values import duration, seconds_of
from envcheck.collector.kernels.selection import Device
from envcheck.collector.runtime.process import Result
from envcheck.collector.soak.minutes import GpuMinutes
from envcheck.collector.soak.runner import outsiders
from envcheck.collector.soak.worker import SILENT, SoakWorker
from envcheck.collector.telemetry.quantities import NAMES
from envcheck.collector.worker import messages
from envcheck.facts.soak import SoakGpu, SoakMinute


def sample(**values: float) -> list[float | None]:
    return [values.get(name) for name in NAMES]


def test_a_minute_has_means_the_highest_and_shares() -> None:
    minutes = GpuMinutes()
    minutes.errors({"pcie_width": 16, "pcie_replays": 5, "ecc_corrected": 2})
    for clock, heat, reasons in ((1700, 60, 4), (1800, 70, 0x44), (1750, 65, 0)):
        minutes.sample(sample(sm_clock_mhz=clock, temperature_c=heat, throttle_reasons=reasons))
    minutes.errors({"pcie_width": 8, "pcie_replays": 9})
    minutes.errors({"pcie_width": 16})
    minutes.xid(63)
    record = minutes.over(0.0, 60.0, 1200, 600.0)
    assert record["sm_clock_mhz"] == 1750.0 and record["temperature_c"] == 70
    assert record["throttled"] == {"sw_power_cap": 0.6667, "hw_thermal_slowdown": 0.3333}
    assert record["pcie_width"] == 8 and record["xids"] == [63] and record["reason_samples"] == 3
    assert record["grown"] == {"pcie_replays": 4}, "what was there before is not new"
    following = minutes.over(60.0, 60.0, 0)
    assert following["pcie_width"] == 16 and following["grown"] == {} and following["xids"] == []
    assert msgspec.convert(record, SoakMinute).tflops == 600.0
    assert msgspec.convert(following, SoakMinute).tflops is None


class Heard:
    """A worker whose process says what a test lets it say, on a clock of the test's."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lines: list[bytes] = []
        self.result: Any = None
        self.stopped = False
        device = Device({"pci_address": "0000:01:00.0", "index": 0, "name": "NVIDIA X"})
        self.worker = SoakWorker(device, lambda *_: self, lambda: self.now)
        self.worker.open()
        self.worker._worker._pipe = Struct(lines=self._lines, close=lambda: None)

    def stop(self) -> None:
        self.stopped = True

    def poll(self) -> Any:
        return self.result

    def _lines(self) -> list[bytes]:
        lines, self.lines = self.lines, []
        return lines

    def say(self, *records: Any) -> None:
        for one in records:
            if isinstance(one, bytes):
                self.lines.append(messages.MARK + one)
                continue
            for key, value in one.items():
                self.lines += messages.encode({"result": value, "of": key}).splitlines()
        self.worker.look()

    def begin(self) -> None:
        self.lines += messages.encode({"begin": {}}).splitlines()
        self.say(READY, FIRST)

    def end(self, outcome: str, code: int | None) -> None:
        self.result = Result(["x"], outcome, code, b"", b"", 1.0)
        self.worker.look()

    def facts(self) -> SoakGpu:
        return msgspec.convert(self.worker.gpu_facts(90.0), SoakGpu)


READY = {
    "ready": {
        "level": "driver",
        "mode": "fp16",
        "call": "mma",
        "tflop": 0.5,
        "words": 10,
        "memory_mib": 64,
        "library": "",
        "library_version": "",
    }
}
FIRST = {"round": {"number": 0, "product": 1, "digest": "ab"}}
WRONG = {
    "t": 101.0,
    "what": "product",
    "product": 7,
    "words": 2,
    "row": 1,
    "column": 2,
    "found": 1,
    "wanted": 0,
    "unit": 3,
}


def test_what_a_process_tells_becomes_its_gpus_facts() -> None:
    one = Heard()
    one.begin()
    one.say({"tick": {"t": 100.0, "products": 10, "passes": 0}})
    one.say({"wrong": WRONG}, {"more": 4})
    one.say({"tick": {"t": 110.0, "products": 50, "passes": 3}})
    assert one.worker.minute(0.0, 10.0)["tflops"] == 2.0
    result = one.facts()
    assert (result.outcome, result.products, result.passes) == ("ok", 50, 3)
    assert (result.wrong, result.wrong_words) == (2, 6)
    assert result.mismatches[0].found == "0x00000001" and result.mismatches[0].seconds == 11.0


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xff",
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        {"tick": {"t": "x", "products": 1, "passes": 0}},
        {"tick": None},
        {"ready": {"level": 5}},
        {"ready": {**READY["ready"], "tflop": "x"}},
        {"round": {}},
        {"round": {"number": "x", "product": 1, "digest": "ab"}},
        {"wrong": {}},
        {"wrong": {**WRONG, "row": "x"}},
        {"more": None},
        {"unknown": 1},
    ],
)
def test_a_record_that_is_none_changes_nothing(record: Any) -> None:
    one = Heard()
    one.begin()
    before = one.facts()
    one.say(record)
    assert one.facts() == before


def test_a_process_that_dies_is_told_with_its_time_and_one_that_never_began_is_no_death() -> None:
    one = Heard()
    one.begin()
    one.now = 150.0
    one.end("exited", -9)
    assert (one.facts().outcome, one.facts().ended) == ("died", 60.0)
    assert "SIGKILL" in one.facts().reason
    assert one.worker.minute(0.0, 60.0) is not None and one.worker.minute(60.0, 60.0) is None
    other = Heard()
    died = {"done": {"outcome": "died", "reason": "cuInit: no device"}}
    other.lines += messages.encode(died).splitlines()
    other.end("exited", 1)
    assert (other.facts().outcome, other.facts().reason) == ("error", "cuInit: no device")


def test_a_process_that_says_nothing_any_more_hangs() -> None:
    one = Heard()
    one.begin()
    one.now += SILENT - 1
    one.worker.look()
    assert not one.stopped
    one.now += 2
    one.worker.look()
    assert one.stopped
    one.end("stopped", None)
    assert one.facts().outcome == "hung"


def test_whose_result_is_not_the_others() -> None:
    assert outsiders({"a": "1", "b": "1", "c": "2"}) == ["c"]
    assert outsiders({"a": "1", "b": "2"}) == ["a", "b"], "of two nobody knows"
    assert outsiders({"a": "1", "b": "1"}) == [] and outsiders({}) == []


def test_a_minute_is_judged_as_it_comes() -> None:
    for words, one in (
        ([], minute(0)),
        (["2 wrong results"], minute(0, wrong=2)),
        (["ecc uncorrected +2"], minute(0, grown={"ecc_uncorrected": 2, "pcie_replays": 9})),
        (["Xid 79"], minute(0, xids=[79, 79])),
        (["slowed down by heat in 50%"], minute(0, throttled={"hw_thermal_slowdown": 0.5})),
    ):
        assert failures("ok", "", one) == words
    assert failures("died", "why", minute(0)) == ["died: why"]


@pytest.mark.parametrize(
    "text", ["", "30", "m", "30x", "-5m", "1m1h", "5m5m", "1e3s", "nan", "inf", "٣m", "30m " * 99]
)
def test_what_is_no_duration_is_refused_in_one_sentence(text: str) -> None:
    assert seconds_of(text) is None
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration: write 90s"):
        duration("30s", "30d")(text)
