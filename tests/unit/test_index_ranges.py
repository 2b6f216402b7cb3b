"""The Range header, as far as it is served."""

from __future__ import annotations

import pytest

from envcheck.install.serving.ranges import Unsatisfiable, parse


@pytest.mark.parametrize(
    ("header", "answer"),
    [
        ("bytes=0-9", (0, 10)),
        ("bytes=90-", (90, 10)),
        ("bytes=90-500", (90, 10)),
        ("bytes=-10", (90, 10)),
        ("bytes=-500", (0, 100)),
        ("bytes = 5 - 5", (5, 1)),
        ("bytes=9-5", None),
        ("bytes=-", None),
        ("bytes=0-1,5-6", None),
        ("lines=1-2", None),
        ("bytes=a-b", None),
    ],
)
def test_one_range(header: str, answer: tuple[int, int] | None) -> None:
    assert parse(header, 100) == answer


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_a_range_behind_the_end(header: str) -> None:
    with pytest.raises(Unsatisfiable):
        parse(header, 100)
