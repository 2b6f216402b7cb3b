"""The tables that judgement rests on: CSV, a source in every row.

An empty cell means that no source was seen: it reads as "", and the product says "not known".
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """The rows of ``NAME.csv``, each a mapping from column to text."""
    text = files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))
