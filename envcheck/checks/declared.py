"""What checks declare, in a TOML file beside each module: their texts and the causes that they find.

`kernel/device_nodes.toml` belongs to `kernel/device_nodes.py`. A table `check.CODE` is what
`envcheck explain` says of a check, a table `cause.KEY` a Cause; its fields are those of
`findings.causes.Cause`. A cause with `like = "KEY"` is another cause of the file with some fields changed.
"""

from __future__ import annotations

import pkgutil
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


def _cause(row: dict[str, Any]) -> Cause:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    values.pop("like", None)
    return Cause(**values)
