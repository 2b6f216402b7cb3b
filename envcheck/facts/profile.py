"""A profile: what a machine must be, as somebody wrote it into a file."""

from __future__ import annotations

from typing import Any, NamedTuple

Value = bool | int | float | str | list[Any]  # a list of these


class Wanted(NamedTuple):
    """One key of a profile."""

    value: Value


Tables = dict[str, list[dict[str, Wanted]]]


class ProductTables(NamedTuple):
    """What machines of one product must be. name: their GPUs, "8 × NVIDIA H100 80GB HBM3"."""

    name: Wanted
    tables: Tables


class Profile(NamedTuple):
    """where: the file. tables: a section's tables by its name, each {key: what is wanted}, of every machine.

    products: of the machines of one product each, beside those.
    """

    where: str
    tables: Tables
    products: tuple[ProductTables, ...] = ()
