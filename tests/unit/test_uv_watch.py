"""When a uv that asks indexes is ended, and when not."""

from __future__ import annotations

import pytest

from envcheck.exit_codes import CouldNotLook
from envcheck.install import processes
from envcheck.install.wheels.uv_watch import MEMORY, SILENCE, Watch


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
