"""Which tests run without being asked for."""

from __future__ import annotations

import re

import pytest

# Each is declared in pyproject.toml. .ci/run runs the first three.
LEFT_OUT = ("engine", "heavy", "fleet", "slow", "gpu")


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> dict[str, int]:
    """Deselect what has a mark that ``-m`` does not name (of several, the last one); how many, by mark."""
    named = set(re.findall(r"\w+", config.option.markexpr))
    counted: dict[str, int] = {}
    kept, left = [], []
    for item in items:
        mark = next((m for m in reversed(LEFT_OUT) if item.get_closest_marker(m)), "")
        if not mark or mark in named:
            kept.append(item)
        else:
            left.append(item)
            counted[mark] = counted.get(mark, 0) + 1
    if left:
        items[:] = kept
        config.hook.pytest_deselected(items=left)
    return {mark: counted[mark] for mark in LEFT_OUT if mark in counted}


def mark_by_fixture(items: list[pytest.Item]) -> None:
    """A test that uses an engine is marked so."""
    for item in items:
        if "base_tar" in getattr(item, "fixturenames", ()):
            item.add_marker("engine")
