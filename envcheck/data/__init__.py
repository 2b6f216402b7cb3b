"""The tables that judgement rests on: CSV, a source in every row.

An empty cell means that no source was seen: it reads as "", and the product says "not known".
"""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """The rows of ``NAME.csv``, each a mapping from column to text."""
    text = Path(__file__).with_name(f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@cache
def numbers(name: str) -> dict[str, float]:
    """{name: number} of a table whose first two columns are these."""
    pairs = (list(row.values())[:2] for row in table(name))
    return {key: int(text) if text.isdecimal() else float(text) for key, text in pairs}


def rows(name: str, kind: type[T]) -> tuple[T, ...]:
    """The rows of ``NAME.csv`` as structs: of each column what the field's type says.

    An empty cell is "" of a text, () of a tuple, and the field's default of all others. Tuples of texts are
    written with blanks, commas or semicolons between, others with semicolons; bools as "yes" and "no".
    Versions, Requirements and Patterns are made of their text. Raises msgspec.ValidationError.
    """
    found: tuple[T, ...] = _read(name, kind)
    return found


@cache
def _read(name: str, kind: type[msgspec.Struct]) -> tuple[Any, ...]:
    hints = get_type_hints(kind)
    columns = {field.encode_name: hints[field.name] for field in msgspec.structs.fields(kind)}
    cells = [
        {
            column: _cell(row[column], hint)
            for column, hint in columns.items()
            if row[column] or hint is str or get_origin(hint) in (tuple, Literal)
        }
        for row in table(name)
    ]
    return tuple(msgspec.convert(cell, kind, strict=False, dec_hook=_made) for cell in cells)


def _cell(cell: str, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        between = r"[\s,;]+" if get_args(hint)[0] is str else r"\s*;\s*"
        return re.split(between, cell.strip()) if cell.strip() else []
    return {"yes": True, "no": False}[cell] if hint is bool else cell


def _made(kind: type, text: str) -> Any:
    return re.compile(text) if (get_origin(kind) or kind) is re.Pattern else kind(text)
