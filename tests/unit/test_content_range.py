"""The parts of a file that answers hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from envcheck.install.network.errors import HttpError
from envcheck.install.store import download


def answer(status: int, **headers: str) -> Any:
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return SimpleNamespace(status_code=status, headers=named, url="https://u:p@index.example/w")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (answer(200, content_length="100"), (30, 100)),
        (answer(200), (30, None)),
        (answer(200, content_length="²"), (30, None)),
        (answer(200, content_length="9" * 5000), (30, None)),
        (answer(206, content_range="bytes 30-99/100"), (0, 100)),
        (answer(206, content_range="bytes 10-99/*"), (20, None)),
    ],
)
def test_the_place_of_a_part(response: Any, expected: tuple[int, int | None]) -> None:
    assert download.place(response, 30) == expected


@pytest.mark.parametrize(
    "response",
    [
        answer(206, content_range="bytes 31-99/100"),
        answer(206),
        answer(206, content_range="x"),
        answer(206, content_range="bytes ²-99/100"),
        answer(206, content_range=f"bytes 0-{'9' * 5000}/*"),
    ],
)
def test_a_part_that_leaves_a_gap_is_not_taken(response: Any) -> None:
    with pytest.raises(HttpError, match="sends another part") as caught:
        download.place(response, 30)
    assert caught.value.again


def test_the_size_in_a_refused_range() -> None:
    assert download._range({"Content-Range": "bytes */100"}) == (None, 100)
    assert download._range({}) == (None, None)
