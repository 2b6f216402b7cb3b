"""What came or went with a release of numpy, as failed imports mention it: names, and its C interface."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from . import table


class NumpyName(NamedTuple):
    """added_in, removed_in: "1.25"; "" where it was always there, or still is."""

    added_in: str
    removed_in: str
    source: str


def numpy_name(name: str) -> NumpyName | None:
    """The row of ``numpy.NAME``; None for one that is not in the table."""
    return _names().get(name)


@cache
def _names() -> dict[str, NumpyName]:
    return {
        name: NumpyName(row["added_in"], row["removed_in"], row["source"])
        for row in table("numpy_names")
        for name in row["names"].split()
    }


def first_numpy(api: int) -> str:
    """The first release with that version of the C interface: "1.23" for 0x10; "" for an unknown one."""
    return _first_numpy().get(api, "")


@cache
def _first_numpy() -> dict[int, str]:
    return {int(row["api"], 16): row["first_numpy"] for row in table("numpy_api")}
