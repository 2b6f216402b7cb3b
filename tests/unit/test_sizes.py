"""No room grows beyond its budget, or beyond its ceiling while the budget is not met yet."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "sizes.py"
_spec = importlib.util.spec_from_file_location("sizes", BENCHMARK)
assert _spec and _spec.loader
sizes = importlib.util.module_from_spec(_spec)
sys.modules["sizes"] = sizes  # its dataclass looks itself up
_spec.loader.exec_module(sizes)


@pytest.mark.parametrize("room", sizes.rooms(), ids=lambda room: room.name)
def test_a_room_is_within_its_limit(room: object) -> None:
    assert isinstance(room, sizes.Room)
    assert 0 < room.lines() <= room.limit, "make room first: CONTRIBUTING, The house"


def test_a_ceiling_stands_where_a_budget_is_missed_alone() -> None:
    for room in sizes.rooms():
        assert room.ceiling is None or room.ceiling > room.budget


def test_every_module_is_in_a_room() -> None:
    *rooms, source, _tests = sizes.rooms()
    assert source.name == "source in all"
    counted = {path for room in rooms for path in room.files()}
    assert counted == set(source.files())
