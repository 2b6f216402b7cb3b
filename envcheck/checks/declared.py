"""What checks declare, in a TOML file beside each module: their texts and the causes that they find.

`kernel/device_nodes.toml` belongs to `kernel/device_nodes.py`. A table `check.CODE` is what
`envcheck explain` says of a check, a table `cause.KEY` a Cause; its fields are those of
`findings.causes.Cause`. A cause with `like = "KEY"` is another cause of the file with some fields changed.
One with a table `shown_by` is a DeclaredRow: a setting's value or a line of the kernel's log shows it.
"""

from __future__ import annotations

import pkgutil
import re
from functools import cache
from typing import Any

import msgspec
import tomli  # three times as fast as the standard library's

from ..findings.causes import Cause


class DeclaredCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A check's own texts. causes: their keys in this file; None: all of them."""

    title: str
    about: str
    sources: tuple[str, ...]
    follows: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    causes: tuple[str, ...] | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    check: dict[str, DeclaredCheck] = {}
    cause: dict[str, dict[str, Any]] = {}


@cache
def _file(module: str) -> _File:
    package, _, name = module.rpartition(".")
    text = (pkgutil.get_data(package, f"{name}.toml") or b"").decode()
    return msgspec.convert(tomli.loads(text), _File)


class DeclaredRow(msgspec.Struct, frozen=True):
    """A cause, and the setting or the line of a log that shows it.

    names: of settings and variables, or kinds of lines; pattern: of a value, or in a line. when: what has to
    hold besides, by names that the check knows, or packages of which one is installed ("numba|numba-cuda").
    value: what the setting should be; "" where it should not be set. steps: commands; "@WHAT" stands for
    those of this system. listed: the cause where the driver lists the GPU; None where the GPU's answer counts
    for more.
    """

    cause: Cause
    names: tuple[str, ...]
    pattern: str = ""
    when: tuple[str, ...] = ()
    value: str = ""
    steps: tuple[str, ...] = ()
    listed: Cause | None = None

    def fits(self, name: str, text: str) -> bool:
        return name in self.names and bool(re.search(self.pattern, text))


def declared_check(module: str, code: str) -> DeclaredCheck:
    return _file(module).check[code]


@cache
def declared_causes(module: str) -> dict[str, Cause]:
    """The causes of a module's file by their keys there."""
    rows: dict[str, dict[str, Any]] = {}
    for key, row in _file(module).cause.items():
        base = rows[row["like"]] if "like" in row else {}
        rows[key] = {**base, "key": key, **row}
    return {key: _cause(row) for key, row in rows.items()}


def causes_of(module: str, code: str) -> list[Cause]:
    """The causes of one check that are in its module's file."""
    every, keys = declared_causes(module), declared_check(module, code).causes
    return [every[key] for key in (every if keys is None else keys)]


@cache
def declared_rows(module: str, code: str = "") -> tuple[DeclaredRow, ...]:
    """The rows of a module's file, or of one check there; the first that fits counts."""
    causes, file = declared_causes(module), _file(module)
    keys = file.check[code].causes if code else None
    rows = {key: _tuples(one["shown_by"]) for key, one in file.cause.items() if "shown_by" in one}
    return tuple(
        DeclaredRow(
            causes[key], **{**row, "listed": causes[row["listed"]] if "listed" in row else None}
        )
        for key, row in rows.items()
        if keys is None or key in keys
    )


def _cause(row: dict[str, Any]) -> Cause:
    return Cause(**{k: v for k, v in _tuples(row).items() if k not in ("like", "shown_by")})


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
