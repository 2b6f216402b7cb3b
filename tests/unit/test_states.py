"""The four states of a machine: what makes one degraded, alone and among its peers."""

from __future__ import annotations

import pytest
import test_fleet_outliers as outliers
from test_fleet_outliers import machine

from envcheck.attributes.model import Attribute
from envcheck.attributes.registry import SECTIONS
from envcheck.attributes.values import GPUS, NICS
from envcheck.checks.registry import all_checks
from envcheck.data import table
from envcheck.findings.states import degrades, is_less
from envcheck.fleet.changes import Compared, changes
from envcheck.fleet.model import JudgedMachine
from envcheck.fleet.network.causes import CHECK
from envcheck.fleet.reports.sections import about
from envcheck.fleet.result import result


def test_each_row_names_a_cause_or_an_attribute_that_exists() -> None:
    checks = (*all_checks(), CHECK)
    causes = {(check.code, cause.key) for check in checks for cause in check.causes}
    keys = {f"{name}.{key.name}" for name, section in SECTIONS.items() for key in section.keys}
    named = causes | {("", key) for key in keys | {GPUS, NICS}}
    assert {(row["check"], row["key"]) for row in table("degrading")} <= named


def test_advice_degrades_no_machine() -> None:
    assert degrades("GPU-022", "ecc-off") and not degrades("GPU-015", "persistence-off")


@pytest.mark.parametrize(
    ("key", "value", "usual", "less"),
    [
        (GPUS, "7 × NVIDIA H100", "8 × NVIDIA H100", True),
        (GPUS, "8 × NVIDIA H100", "7 × NVIDIA H100", False),
        (NICS, "none", "2 × mlx5", True),
        (NICS, " \t", "2 × mlx5", True),
        (NICS, "nan", "2 × mlx5", False),
        ("gpus.power_limit_w", "500", "700", True),
        ("gpus.power_limit_w", "700", "500", False),
        ("gpus.ecc", "off", "on", True),
        ("gpus.ecc", "on", "off", False),
        ("nics.state", "DOWN", "ACTIVE", True),
        ("gpus.persistence", "off", "on", False),
        ("driver.version", "550.1", "570.1", False),
    ],
)
def test_less_than_its_peers(key: str, value: str, usual: str, less: bool) -> None:
    assert is_less(key, value, usual) is less


def cap(watts: str) -> Attribute:
    return Attribute(key="gpus.power_limit_w", words="power limit", value=watts)


def states(machines: list[JudgedMachine]) -> list[str]:
    return [one.state for one in result(machines).machines]


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("healthy", "degraded", ["degraded"]),
        ("degraded", "broken", ["broken"]),
        ("broken", "degraded", ["solved"]),
        ("degraded", "healthy", ["healthy"]),
        ("healthy", "silent", ["problem"]),
        ("degraded", "degraded", []),
    ],
)
def test_a_turn_of_the_state_is_a_change(before: str, after: str, kinds: list[str]) -> None:
    looks = [Compared([machine("a", state=state)], [], [], []) for state in (before, after)]
    assert [one.kind for one in changes(*looks)] == kinds


@pytest.mark.parametrize(
    ("names", "product"),
    [(["H100"], "2 × H100"), (["H100", "H100 (vGPU)"], "2 × bus"), ([], "2 × bus")],
)
def test_a_machine_without_a_driver_is_of_the_product_of_others_with_its_devices(
    names: list[str], product: str
) -> None:
    others = [machine(f"m{n}", cards=[("10de:2330", name)]) for n, name in enumerate(names)]
    broken = machine("b", product="2 × bus", cards=[("10de:2330", "")] * 2)
    assert result([*others, broken]).machines[-1].product == product


def test_a_machine_that_is_less_than_its_peers_is_degraded() -> None:
    values = ["700", "700", "500", "700"]
    capped = [machine(f"m{n}", cap(watts)) for n, watts in enumerate(values)]
    assert states(capped) == ["healthy", "healthy", "degraded", "healthy"]
    (found,) = [one for one in result(capped).machines if one.state == "degraded"]
    assert found.verdict == f"degraded: {about(found)}" == "degraded: power limit 500"
    assert set(states(outliers.valued("570", "570", "550", "570"))) == {"healthy"}
    broken = machine("m2", cap("500"), state="broken")
    assert states([*capped[:2], broken, capped[3]])[2] == "broken"
    slow = outliers.measured(40, {("m7", gpu): 0.1 for gpu in range(8)})
    assert [n for n, state in enumerate(states(slow)) if state == "degraded"] == [7]
