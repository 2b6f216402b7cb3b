"""The process that samples, on a stand-in NVML whose figures move, and whose GPUs die or hang."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import PATIENCE
from world import folder

from envcheck import nvidia_ml_py
from envcheck.collector.runtime import process
from envcheck.collector.telemetry.telemetry import Telemetry

GPUS = ["0000:83:00.0", "0000:84:00.0"]
Opened = Callable[..., Telemetry]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder.put(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def opened(libraries: Path, tmp_path: Path) -> Iterator[Opened]:
    made: list[Telemetry] = []

    def start(*moves: str, library: Path = libraries, **more: Any) -> Telemetry:
        """moves: rows of NVML's answers that come first, as c/nvml.c describes them."""
        machine = folder.h200(2)
        machine.nvml_first = [*moves]
        env = os.environ | folder.variables(library, folder.describe(machine, tmp_path))

        def child(argv: list[str], deadline: float, cwd: str, _env: None) -> process.Child:
            return process.Child(argv, deadline, cwd=cwd, env=env, tied=True)

        path = nvidia_ml_py.file()
        one = Telemetry(child, None if path is None else str(path))
        made.append(one)
        one.open(GPUS, **{"interval": 0.02, "errors": True, **more})
        return one

    yield start
    for one in made:
        one.close()


Event = tuple[str, str, float, Any]


def until(one: Telemetry, reached: Callable[[], object], found: list[Event] | None = None) -> None:
    """Poll until something is so; what came meanwhile goes into ``found``."""
    limit = time.monotonic() + PATIENCE
    while not reached():
        events = one.poll()
        if found is not None:
            found += events
        assert time.monotonic() < limit, (one.missing, found)
        time.sleep(0.01)


def errors_of(found: list[Event], gpu: str) -> dict[str, float]:
    """The latest of each."""
    merged: dict[str, float] = {}
    for kind, of, _when, value in found:
        if (kind, of) == ("errors", gpu):
            merged.update(value)
    return merged


def column(one: Telemetry, gpu: str, name: str) -> list[float]:
    rows = [row for row in one.between(0, time.monotonic()) if row["gpu"] == gpu]
    return [value for value in rows[0]["values"][name] if value is not None] if rows else []


def test_what_moves_is_sampled_of_each_gpu(opened: Opened) -> None:
    one = opened(
        folder.later(0, 1, "ClockInfo", 1200, "1"),
        folder.later(0, 1, "Temperature", 88, "0"),
        folder.later(0, 1, "PowerUsage", 300_000),
    )
    until(one, lambda: 1200 in column(one, GPUS[0], "sm_clock_mhz"))
    until(one, lambda: 88 in column(one, GPUS[0], "temperature_c"))
    until(one, lambda: 300.0 in column(one, GPUS[0], "power_w"))
    assert set(column(one, GPUS[1], "sm_clock_mhz")) == {1755}
    assert set(column(one, GPUS[1], "throttle_reasons")) == {4}
    rows = one.between(0, time.monotonic(), since=one.between(0, time.monotonic())[0]["seconds"][0])
    assert abs(rows[0]["seconds"][0]) <= 0.001 and rows[0]["seconds"] == sorted(rows[0]["seconds"])
    assert {len(column) for column in rows[0]["values"].values()} == {len(rows[0]["seconds"])}


def test_errors_come_when_they_change_and_xids_when_they_happen(opened: Opened) -> None:
    one = opened(
        folder.later(1, 1.5, "TotalEccErrors", 3, "0,0", "Q"),
        folder.later(1, 1.5, "PcieReplayCounter", 12),
        "2 xid 63 0 seconds=1.5",
        "2 xid 94 0 seconds=1.6",
    )
    found: list[Event] = []
    until(one, lambda: errors_of(found, GPUS[1]), found)
    first = errors_of(found, GPUS[1])
    assert first["ecc_corrected"] == 0 and first["pcie_width"] == 16

    def xids() -> list[tuple[str, int]]:
        return [(gpu, number) for kind, gpu, _when, number in found if kind == "xid"]

    until(one, lambda: errors_of(found, GPUS[1])["ecc_corrected"] == 3 and len(xids()) == 2, found)
    assert errors_of(found, GPUS[1])["pcie_replays"] == 12
    assert xids() == [(GPUS[1], 63), (GPUS[1], 94)]
    assert errors_of(found, GPUS[0])["ecc_corrected"] == 0


def test_a_lost_gpu_comes_with_its_time_and_the_other_goes_on(opened: Opened) -> None:
    began = time.monotonic()
    one = opened("1 * * 15 seconds=1")
    found: list[Event] = []
    until(one, lambda: [one for one in found if one[0] == "lost"], found)
    ((_kind, gpu, when, why),) = [one for one in found if one[0] == "lost"]
    assert (gpu, why) == (GPUS[0], "GPU is lost") and when - began > 0.9
    before = len(column(one, GPUS[1], "power_w"))
    until(one, lambda: len(column(one, GPUS[1], "power_w")) > before + 5)


def test_a_call_that_hangs_costs_that_gpus_samples_alone(opened: Opened) -> None:
    one = opened("1 * * 0 seconds=1,hang")
    until(one, lambda: all(one._samples[gpu] for gpu in GPUS))

    def behind() -> bool:
        """Whether the other's samples go on, and this one's do not."""
        latest = [one._samples[gpu][-1][0] for gpu in GPUS]
        return latest[1] - latest[0] > 0.5

    until(one, behind)
    one.close()  # comes back although the call hangs


def test_whoever_does_not_look_loses_samples_and_holds_nobody_up(opened: Opened) -> None:
    one = opened(interval=0.0)
    until(one, lambda: column(one, GPUS[0], "power_w"))
    time.sleep(1.5)  # the pipe is full by now
    began = time.monotonic()
    until(one, lambda: one.poll() and one._samples[GPUS[0]][-1][0] > began)
