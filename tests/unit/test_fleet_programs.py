"""What programs read of a fleet: JSON and its schema, JUnit."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import jsonschema
import msgspec
from fleet_results import (
    attribute_outlier,
    everything,
    fleet_result,
    hostile,
    machine,
    problem,
    rate_outlier,
    three,
)
from msgspec.structs import replace

from envcheck.attributes.model import Attribute, Measurement
from envcheck.fleet.model import FleetResult
from envcheck.fleet.reports import as_json, junit


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


def test_both_are_the_same_each_time() -> None:
    for render in (as_json.render, junit.render):
        assert render(everything()) == render(everything())


def suites(found: FleetResult, strict: bool = False) -> dict[str | None, ET.Element]:
    root = ET.fromstring(junit.render(found, warnings_fail=strict))
    for number in ("tests", "failures", "errors"):
        counted = sum(int(suite.attrib[number]) for suite in root)
        assert root.attrib[number] == str(counted)
    return {suite.get("name"): suite for suite in root}


def test_a_suite_a_machine() -> None:
    found = suites(three())
    assert [case.get("name") for case in found["a"].iter("testcase")] == ["is healthy"]
    (failure,) = found["b"].iter("failure")
    assert failure.get("type") == "DRV-002" and "sudo reboot" in (failure.text or "")
    (error,) = found["c"].iter("error")
    assert (error.get("type"), error.get("message")) == ("unreachable", "No route to host")


def test_warnings_and_odd_ones_fail_where_they_are_to() -> None:
    warned = machine("a", problems=[problem(level="warn")])
    found = fleet_result(
        [warned], attribute_outliers=[attribute_outlier("a")], rate_outliers=[rate_outlier("a")]
    )
    for strict, number in ((False, "0"), (True, "3")):
        suite = suites(found, strict)["a"]
        assert (suite.get("tests"), suite.get("failures")) == ("3", number)


def test_what_one_check_found_on_several_gpus_is_one_case() -> None:
    two = [problem(message="one"), problem(message="other")]
    suite = suites(fleet_result([machine("a", "problems", problems=two)]))["a"]
    (failure,) = suite.iter("failure")
    assert "one\n" in (failure.text or "") and "other\n" in (failure.text or "")


def test_who_could_not_be_looked_at_is_an_error() -> None:
    blind = replace(machine("a"), state="could-not-look", verdict="no answer of the driver")
    (error,) = suites(fleet_result([blind]))["a"].iter("error")
    assert error.get("message") == "no answer of the driver"


def test_hostile_words_are_text_of_the_xml() -> None:
    root = ET.fromstring(junit.render(hostile()))
    assert {one.tag for one in root.iter()} == {
        *("testsuites", "testsuite", "properties", "property", "testcase", "failure", "error"),
        "system-out",
    }
