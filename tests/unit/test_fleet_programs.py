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
    machine,
    three,
)

from envcheck.attributes.model import Attribute, Measurement
from envcheck.fleet.model import FleetResult
from envcheck.fleet.reports import as_json


def test_json_obeys_its_schema() -> None:
    for found in (three(), everything(), fleet_result([])):
        told = json.loads(as_json.render(found))
        jsonschema.validate(told, as_json.schema())
        assert msgspec.json.decode(as_json.render(found), type=FleetResult) == found
    jsonschema.validate(json.loads(as_json.render(hostile())), as_json.schema())


def test_json_without_attributes_and_rates_unless_verbose() -> None:
    rate = Measurement(key="k", words="w", value=1.0, unit="GB/s")
    one = machine("a", attributes=[Attribute(key="k", words="w", value="v")], rates=[rate])
    found = fleet_result([one])
    (told,) = json.loads(as_json.render(found))["machines"]
    assert "attributes" not in told and "rates" not in told
    (told,) = json.loads(as_json.render(found, verbose=True))["machines"]
    assert told["attributes"] == [{"key": "k", "words": "w", "value": "v"}]
    assert told["rates"][0]["unit"] == "GB/s"


def test_hostile_json_shows_nothing_on_a_terminal() -> None:
    shown = as_json.render(hostile())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", shown)
