"""When a uv that asks indexes is ended, and when not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from envcheck.exit_codes import CouldNotLook
from envcheck.install import processes
from envcheck.install.wheels.uv_watch import LEAST, MEMORY, SILENCE, Watch


class World:
    """A clock and a process, as the watch sees them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.resident, self.written = 0.0, 1 << 20, 0
        monkeypatch.setattr(processes, "resident", lambda pid: self.resident)
        monkeypatch.setattr(processes, "written", lambda pid: self.written)
        self.watch = Watch("the index x", clock=lambda: self.now)

    def passes(self, seconds: float, rate: float = 0.0) -> None:
        """So many bytes a second are written meanwhile."""
        for _ in range(int(seconds)):
            self.now += 1
            self.written += int(rate)
            self.watch(1)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_slow_line_is_waited_for(world: World) -> None:
    world.passes(3600, rate=400)


def test_less_than_threads_need_to_wake_each_other_is_silence(world: World) -> None:
    world.passes(SILENCE - 1, rate=100)
    with pytest.raises(CouldNotLook, match="the index x sent no complete page in 240 seconds"):
        world.passes(10, rate=100)


def test_a_pause_of_the_whole_program_does_not_count(world: World) -> None:
    world.passes(SILENCE - 10)
    world.now += 8 * 3600
    world.passes(9)
    with pytest.raises(CouldNotLook):
        world.passes(10)


def test_memory(world: World) -> None:
    world.resident = MEMORY
    world.passes(1)
    world.resident += 1
    with pytest.raises(CouldNotLook, match="more than 1024 MiB"):
        world.passes(1)


def test_this_process_is_seen() -> None:
    before = processes.written(os.getpid())
    with Path(os.devnull).open("wb", buffering=0) as file:
        file.write(bytes(LEAST))
    assert processes.written(os.getpid()) - before >= LEAST
    assert processes.resident(os.getpid()) > 1 << 20


def test_where_proc_cannot_be_read_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = 1 << 30
    assert processes.resident(nobody) == 0
    first = processes.written(nobody)
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + 10)
    assert processes.written(nobody) - first >= LEAST
