"""What people and programs read of a fleet."""

from __future__ import annotations

import json
import re

import jsonschema
import msgspec
import pytest
from fleet_results import (
    attribute_outlier,
    everything,
    fleet_result,
    hostile,
    machine,
    rate_outlier,
    three,
)

from envcheck import json_text
from envcheck.fleet.model import FleetResult
from envcheck.fleet.reports import text, words
from envcheck.reports.json_schema import schema
from envcheck.reports.plain import devices_named


@pytest.mark.parametrize(
    ("states", "printed"),
    [
        (["healthy"], "1 of 1 machine is healthy"),
        (["healthy"] * 3, "all 3 machines are healthy"),
        (["broken"], "0 of 1 machine is healthy, 1 broken"),
        (
            ["healthy"] * 972 + ["degraded"] * 26 + ["broken"] * 2,
            "972 of 1,000 machines are healthy, 26 degraded, 2 broken",
        ),
        (["healthy", "silent"], "1 of 2 machines is healthy, 1 did not answer"),
        (
            ["healthy", "healthy", "blind"],
            "2 of 3 machines are healthy, 1 could not be checked completely",
        ),
    ],
)
def test_the_verdict(states: list[str], printed: str) -> None:
    machines = [machine(f"m{number}", state) for number, state in enumerate(states)]
    assert words.verdict(fleet_result(machines)) == printed


def test_what_is_odd_is_told_with_the_many() -> None:
    names = [f"gpu{number}" for number in (1, 2)]
    found = fleet_result(
        [machine(name) for name in names],
        attribute_outliers=[attribute_outlier(name) for name in names],
        rate_outliers=[rate_outlier("gpu2", also=["FP8 at L0: 5.1 % below", "b", "c", "d"])],
    )
    shown = " ".join(text.render(found).split())
    assert "GPU 3: VBIOS 96.00.5E; 207 of 208 devices have 96.00.74" in shown
    assert shown.count("96.00.5E") == 1, "the same of several machines is told once"
    assert "GPU 6: FP16 at L0 529.4 TFLOP/s, 7.0% below the median 569.3 of 208" in shown
    assert "also FP8 at L0: 5.1 % below, b, 2 more" in shown
    assert "b, c, d" in " ".join(text.render(found, verbose=True).split())


@pytest.mark.parametrize("options", [{}, {"verbose": True}, {"brief": True}])
def test_hostile_words_stay_in_their_place(options: dict[str, bool]) -> None:
    shown = text.render(hostile(), utf8=True, **options)
    for forbidden in ("\x1b", "\u202e", "\x00", "\ud800"):
        assert forbidden not in shown
    assert "\nFAIL DRV-002 forged" not in shown
    assert "[bold red]markup" in shown or "brief" in options
    assert len(shown) < 400_000
    assert "\x1b[2J" not in text.render(hostile(), colour=True)


def test_json_obeys_its_schema() -> None:
    for found in (three(), everything(), fleet_result([])):
        printed = json.loads(json_text.render(found.without_values()))
        jsonschema.validate(printed, schema("fleet"))
        assert (
            msgspec.json.decode(json_text.render(found.without_values()), type=FleetResult) == found
        )
    jsonschema.validate(json.loads(json_text.render(hostile().without_values())), schema("fleet"))


def test_hostile_json_shows_nothing_on_a_terminal() -> None:
    shown = json_text.render(hostile().without_values())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", shown)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], ""),
        (["GPU 3"], "GPU 3"),
        (["GPU 5", "GPU 0", "GPU 1", "GPU 0"], "GPUs 0–1, 5"),
        (["GPU 0", "0", "GPU at 0000:61:00.0"], "GPU 0, 0, GPU at 0000:61:00.0"),
        ([f"mlx5_{n}" for n in range(6)], "mlx5_0, mlx5_1, mlx5_2, mlx5_3, 2 more"),
    ],
)
def test_devices_are_named_in_a_few_words(names: list[str], words: str) -> None:
    assert devices_named(names) == words
