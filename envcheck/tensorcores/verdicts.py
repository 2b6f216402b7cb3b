"""The verdict on a run that gave results: one total table, ``verdicts.csv``, over all evidence."""

from __future__ import annotations

from functools import cache
from typing import cast

from ..data import table
from .mode_verdict import Verdict, Word

Cell = tuple[bool, Word, Word, Word, bool]


@cache
def cells() -> dict[Cell, Verdict]:
    """{(blind, bits, rate, hardware, control ok): verdict}. Raises ValueError for a double cell.

    blind: the mode's bits are the same on both units, so that they cannot tell by nature.
    """
    found: dict[Cell, Verdict] = {}
    for row in table("verdicts"):
        cell = (
            row["nature"] == "blind",
            cast(Word, row["bits"]),
            cast(Word, row["rate"]),
            cast(Word, row["hardware"]),
            row["control"] == "ok",
        )
        if cell in found:
            raise ValueError(f"verdicts.csv has the cell {cell} twice")
        found[cell] = cast(Verdict, row["verdict"])
    return found


def verdict(blind: bool, bits: Word, rate: Word, hardware: Word, control: bool) -> Verdict:
    """The table's verdict. ``control``: the level's control came out "not engaged" on this GPU."""
    return cells()[blind, bits, rate, hardware, control]
