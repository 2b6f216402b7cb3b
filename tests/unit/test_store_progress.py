"""What is said while files are fetched."""

from __future__ import annotations

import pytest

from envcheck.install.store.progress import Fetching, SmoothedRate, words

MIB = 1 << 20


def state(done: int = 0, **changes: int | None) -> Fetching:
    values = {"files": 43, "files_done": 3, "total": 3128 * MIB, "fetched": done} | changes
    return Fetching(done=done, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shown", "rate", "expected"),
    [
        (state(812 * MIB), 96.5 * MIB, "812 of 3128 MiB, 96.5 MiB/s, 24 s left"),
        (state(812 * MIB), None, "812 of 3128 MiB"),
        (state(812 * MIB, total=None), 2 * MIB, "812 MiB, 2.0 MiB/s"),
        (state(), 15.7 * MIB, "0 of 3128 MiB, 15.7 MiB/s, 3 min 20 s left"),
        (state(812 * MIB), 0.0, "812 of 3128 MiB, 0.0 MiB/s"),
        (state(3128 * MIB), 2 * MIB, "3128 of 3128 MiB, 2.0 MiB/s"),
    ],
)
def test_words(shown: Fetching, rate: float | None, expected: str) -> None:
    assert words(shown, rate) == expected


def test_the_rate_is_smoothed_and_forgets() -> None:
    rate = SmoothedRate()
    rate.add(0.0, 0)
    assert rate.value is None
    rate.add(1.0, 100)
    assert rate.value == 100
    rate.add(2.0, 1100)
    assert rate.value is not None and 100 < rate.value < 1000
    for second in range(3, 60):
        rate.add(float(second), 1100)
    assert rate.value < 1


def test_a_slow_beginning_does_not_count_for_long() -> None:
    rate = SmoothedRate()
    rate.add(0.0, 0)
    rate.add(0.1, 0)  # the first connection is still being made
    for tenth in range(2, 12):
        rate.add(tenth / 10, (tenth - 1) * 100)
    assert rate.value is not None and rate.value > 850  # of 1000
