"""Waves and limits of a roll-out, as Ansible's serial means them."""

from __future__ import annotations

import pytest

from envcheck.fleet.rollout import waves


@pytest.mark.parametrize(
    ("text", "count", "sizes"),
    [
        ("1,10%,100%", 100, [1, 10, 89]),
        ("1,10%,100%", 5, [1, 1, 3]),
        ("1,10%,100%", 1, [1]),
        ("1,10%,100%", 0, []),
        ("3", 8, [3, 3, 2]),
        ("50%", 5, [2, 2, 1]),
        (" 2 , 100% ", 7, [2, 5]),
    ],
)
def test_how_many_machines_each_wave_has(text: str, count: int, sizes: list[int]) -> None:
    assert waves.sizes(waves.parse(text), count) == sizes


@pytest.mark.parametrize("text", ["0", "3", "5%", "100%"])
def test_how_many_may_fail(text: str) -> None:
    assert waves.max_fail(f" {text} ") == text
