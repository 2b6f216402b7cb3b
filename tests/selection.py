"""Which tests run without being asked for, and which share a process of xdist's."""

from __future__ import annotations

import re

import pytest

# Each is declared in pyproject.toml. .ci/run runs the first two.
LEFT_OUT = ("engine", "heavy", "slow", "gpu")

ENGINES = {"podman_world": "podman", "docker_daemon": "docker"}


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
    """A test that uses an engine is marked so, and those of an engine share one."""
    for item in items:
        used = getattr(item, "fixturenames", ())
        if "base_tar" in used:
            item.add_marker("engine")
        group = next((ENGINES[name] for name in used if name in ENGINES), None)
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group or item.path.stem))
