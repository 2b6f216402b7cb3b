"""attributes.csv: every row can be read, and names checks that exist."""

from __future__ import annotations

from typing import get_args

from whole import whole

from envcheck.attributes.named import NAMED
from envcheck.attributes.registry import SECTIONS, Key, Kind
from envcheck.checks.registry import all_checks
from envcheck.facts.view import SnapshotView


def keys() -> dict[str, Key]:
    return {f"{name}.{key.name}": key for name, one in SECTIONS.items() for key in one.keys}


def test_every_row_is_read_from_a_whole_machine() -> None:
    view = SnapshotView(whole())
    of_devices = [name for name, section in SECTIONS.items() if section.many]
    assert {one.kind for one in NAMED.values()} <= set(get_args(Kind))
    for name, key in keys().items():
        assert key.kind in get_args(Kind), name
        if name.partition(".")[0] not in of_devices:
            key.fact(view)  # a path that does not exist raises
    for gpu in view.gpus:
        for key in SECTIONS["gpus"].keys:
            key.fact(gpu)


def test_the_checks_of_an_attribute_exist() -> None:
    codes = {check.code for check in all_checks()}
    assert {code for key in keys().values() for code in key.checks} <= codes
