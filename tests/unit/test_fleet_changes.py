"""What changed in a fleet, when it was first seen, and machines under several names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fleet_results import machine
from test_fleet_outliers import measured, shown

from envcheck.fleet import groups
from envcheck.fleet.model import JudgedMachine
from envcheck.fleet.reports import text
from envcheck.fleet.result import result


def look(month: int, *broken: str, slow: float = 0, driver: str = "570") -> list[JudgedMachine]:
    """Five machines: m1's GPU 6 may be slow, m4 has this driver, m3 does not answer in March."""
    rates = {one.name: one.rates for one in measured(5, {("m1", 6): slow})}
    return [
        machine(
            name,
            "silent" if name == "m3" and month == 3 else "broken" if name in broken else "healthy",
            collected_at=f"2026-0{month}-01T00:00:00Z",
            rates=rates[name],
            attributes=[shown(driver if name == "m4" else "570")],
        )
        for name in rates
    ]


def test_problems_outliers_and_slow_gpus_are_changes_with_a_first_time() -> None:
    before = [look(1, "m0"), look(2, "m0", "m3", slow=0.2), look(3, "m3", slow=0.2)]
    found = result(look(4, "m0", "m3", slow=0.2, driver="550"), before)
    assert [(one.machine, one.kind, one.problems) for one in found.since or ()] == [
        ("m3", "broken", ["DRV-002 kernel module and libraries do not match"]),
        ("m1", "degraded", ["slow GPU 6: 20.5% below the median"]),
        ("m4", "problem", ["driver.version 550, usual is 570"]),
    ]
    broken = {one.name: one.problems[0].first_seen[:7] for one in found.machines if one.problems}
    assert broken == {"m0": "2026-04", "m3": "2026-02"}  # m0 was healthy in March
    assert [one.first_seen[:7] for one in found.rate_outliers] == ["2026-02"]
    assert [one.first_seen[:7] for one in found.attribute_outliers] == ["2026-04"]
    assert "first seen 2026-02-01 00:00" in text.render(found, width=120)
    assert not any(one.first_seen for one in result(look(1, "m0")).groups)


def test_copies_of_a_machine_are_named() -> None:
    names = {"a": ["GPU-1", "x"], "b": ["GPU-1", "y"], "c": ["GPU-2", "z"], "d": ["q"], "e": ["q"]}
    found = result([machine(name, identities=ids) for name, ids in names.items()])
    assert found.copies == [["a", "b"], ["d", "e"]]
    shown_text = text.render(found, width=120)
    assert "a,b  have the same GPUs (by UUID)" in shown_text and "d,e  have" in shown_text


@pytest.mark.parametrize(
    ("kind", "headline"),
    [
        ("nvswitch", "an NVSwitch is not initialized"),
        ("file", "a file is not initialized"),
        ("gpu", "is not initialized"),
    ],
)
def test_a_headline_names_the_class_of_what_it_is_about(kind: str, headline: str) -> None:
    """Of a GPU it is added where it is shown."""
    finding: Any = SimpleNamespace(
        headline="is not initialized", subjects=[SimpleNamespace(kind=kind)]
    )
    assert groups._of_class(finding) == headline
