"""Snapshots in which every text that a Snapshot may say freely is one and the same."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import demos
import msgspec

from envcheck.facts import snapshot as snapshots
from envcheck.facts.snapshot import Snapshot


@cache
def _plain(name: str) -> bytes:
    return demos.build(name)


def filled(name: str, word: str) -> Snapshot:
    """The demo of that name, with that word for every text."""
    report = _filled(msgspec.json.decode(_plain(name)), word, _free(name))
    return snapshots.load(msgspec.json.encode(report))


@cache
def _free(name: str) -> frozenset[str]:
    """The fields that take any text: others have few words, or a form, and what breaks it is refused."""
    whole = msgspec.json.decode(_plain(name))
    free = frozenset(_fields(whole))
    while True:
        try:
            snapshots.load(msgspec.json.encode(_filled(whole, "<b>", free)))
        except snapshots.SnapshotError as error:
            (refused,) = re.findall(r"(\w+)(?:\[[^\]]*\])*`$", str(error))
            free -= {refused}
        else:
            return free


def _fields(value: Any, name: str = "") -> set[str]:
    if isinstance(value, dict):
        return set().union(*(_fields(one, key) for key, one in value.items()), ())
    if isinstance(value, list):
        return set().union(*(_fields(one, name) for one in value), ())
    return {name} if isinstance(value, str) else set()


def _filled(value: Any, word: str, fields: frozenset[str], name: str = "") -> Any:
    if isinstance(value, dict):
        if name in ("variables", "evidence", "settings") and value:
            return {**value, word: next(iter(value.values()))}
        return {key: _filled(one, word, fields, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, word, fields, name) for one in value]
    return word if isinstance(value, str) and name in fields else value
