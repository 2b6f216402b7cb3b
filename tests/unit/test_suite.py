"""What the suite says of itself at its end, and what it leaves out."""

from __future__ import annotations

import ending
import pytest
import selection


class Item:
    """As much of a test as selection looks at."""

    def __init__(self, *marks: str) -> None:
        self.marks = marks

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None


class Config:
    def __init__(self, markexpr: str) -> None:
        self.option = self.hook = self
        self.markexpr = markexpr
        self.gone: list[Item] = []

    def pytest_deselected(self, items: list[Item]) -> None:
        self.gone += items


@pytest.mark.parametrize(
    ("markexpr", "left_out"),
    [
        ("", {"engine": 1, "heavy": 1, "slow": 1}),
        ("engine", {"heavy": 1, "slow": 1}),
        ("engine or heavy", {"slow": 1}),
        ("slow", {"engine": 1, "heavy": 1}),
        ("not slow and not gpu", {"engine": 1, "heavy": 1}),
    ],
)
def test_only_what_is_named_runs_of_what_has_a_mark(
    markexpr: str, left_out: dict[str, int]
) -> None:
    config = Config(markexpr)
    items = [Item(), Item("engine"), Item("heavy"), Item("engine", "slow")]
    assert selection.leave_out(config, items) == left_out  # type: ignore[arg-type]
    assert len(config.gone) == 4 - len(items) and items[0].marks == ()


def test_skips_are_grouped_by_reason() -> None:
    reasons = ["no podman", *(f"there is no Python 3.{n} on this machine" for n in (6, 7, 6))]
    assert ending.skip_lines(reasons) == [
        "    3 × there is no Python 3.6 on this machine (and 1 more like it)",
        "    1 × no podman",
    ]


def test_more_reasons_than_lines_are_counted() -> None:
    lines = ending.skip_lines([chr(97 + n) * 3 for n in range(ending.LINES + 3)])
    assert len(lines) == ending.LINES
    assert lines[-1] == "    4 × 4 other reasons (all of them: -rs)"
    assert ending.skip_lines([]) == []


def test_what_is_left_out_is_one_line_with_a_command() -> None:
    line = ending.left_out_line({"engine": 2, "heavy": 3, "slow": 1})
    assert line == (
        "left out by their marks: 2 engine, 3 heavy, 1 slow"
        ' (to run some: sh setup.sh test -m "engine or heavy")'
    )
