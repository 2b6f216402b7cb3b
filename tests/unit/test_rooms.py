"""Rooms import downwards only: no two import each other, and nothing goes round in a circle.

Every import counts, those inside functions and under TYPE_CHECKING too; `benchmarks/rooms.py` draws them.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "rooms.py"
_spec = importlib.util.spec_from_file_location("rooms", BENCHMARK)
assert _spec and _spec.loader
rooms = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rooms)


def test_no_two_rooms_import_each_other_and_nothing_goes_round_in_circles() -> None:
    arrows = rooms.module_arrows(rooms.modules())
    drawn = rooms.room_arrows(arrows)
    assert {"cli", "checks", "facts", "install/catalogue", "install/transaction"} <= set(drawn)
    assert "checks" in drawn["reports"] and "install/plan" in drawn["install/reports"]
    assert "envcheck.exit_codes" in arrows["envcheck.install.places"]
    assert rooms.pairs(drawn) == set(), "move what both need into a room below them"
    assert rooms.circles(drawn) == []
    assert rooms.circles(arrows) == []


def test_pairs_and_circles_are_found() -> None:
    drawn = {"a": {"b"}, "b": {"c", "a"}, "c": {"d"}, "d": {"e"}, "e": {"c"}}
    assert rooms.pairs(drawn) == {("a", "b")}
    assert sorted(map(sorted, rooms.circles(drawn))) == [["a", "b"], ["c", "d", "e"]]
    assert len(rooms.levels(drawn)) == 2


def test_the_collector_s_rooms_go_down_too() -> None:
    top = rooms.REPOSITORY / "envcheck"
    files = {}
    for path in (top / "collector").rglob("*.py"):
        parts = path.relative_to(top).with_suffix("").parts
        files[".".join(["envcheck", *(part for part in parts if part != "__init__")])] = path
    arrows = rooms.module_arrows(files)
    assert rooms.circles(arrows) == []
    drawn: dict[str, set[str]] = {(*name.split("."), "", "")[2]: set() for name in arrows}
    for name, to in arrows.items():
        here = (*name.split("."), "", "")[2]
        drawn[here] |= {(*other.split("."), "", "")[2] for other in to} - {here}
    assert {"runtime", "probes", "cuda", "facts"} <= set(drawn)
    assert rooms.pairs(drawn) == set() and rooms.circles(drawn) == []
