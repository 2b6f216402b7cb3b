"""What programs read of a fleet: JSON and its schema, JUnit."""

from __future__ import annotations

import json
import re

import jsonschema
import msgspec
from fleet_results import (
    everything,
    fleet_result,
    hostile,
    three,
)

from envcheck.fleet.model import FleetResult
from envcheck.fleet.reports import as_json
from envcheck.reports.json_schema import schema


def test_json_obeys_its_schema() -> None:
    for found in (three(), everything(), fleet_result([])):
        printed = json.loads(as_json.render(found))
        jsonschema.validate(printed, schema("fleet"))
        assert msgspec.json.decode(as_json.render(found), type=FleetResult) == found
    jsonschema.validate(json.loads(as_json.render(hostile())), schema("fleet"))


def test_hostile_json_shows_nothing_on_a_terminal() -> None:
    shown = as_json.render(hostile())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", shown)
