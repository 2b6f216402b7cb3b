"""The report's model and its JSON: locked keys, one schema, the same bytes every time."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from reported import eight_gpus, every_outcome, no_gpu, report_of, result

from envcheck import json_text
from envcheck.facts.snapshot import Snapshot
from envcheck.reports.json_schema import schema as json_schema
from envcheck.reports.model import SCHEMA, status_of, worst


def as_json(*results: Any, facts: Snapshot | None = None) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(json_text.render(report_of(*results, facts=facts)))
    return parsed


# Programs that read the report rely on these: a change here is a new schema version.
def test_the_keys_are_locked() -> None:
    report = as_json(*every_outcome(), facts=eight_gpus())
    assert SCHEMA == report["schema"] == 2
    top = "schema simulated envcheck status verdict headlines counts machine target root"
    assert list(report) == [*top.split(), "tensor_cores", "results"]
    counts = "pass warn fail skipped could-not-run consequences left-out"
    assert list(report["counts"]) == counts.split()
    machine = (
        "summary origin collected_at hostname os kernel architecture container driver cuda gpus"
    )
    assert list(report["machine"]) == machine.split()
    assert list(report["target"]) == ["summary", "location", "collected_at", "python", "frameworks"]
    failed = next(r for r in report["results"] if r["code"] == "GPU-001")
    assert list(failed) == ["code", "area", "title", "outcome", "findings", "unjudged"]
    found = failed["findings"][0]
    assert list(found) == [
        "cause", "level", "headline", "message", "subjects", "evidence", "remedy",
    ]  # fmt: skip
    assert list(found["evidence"][0]) == ["fact", "value", "source"]
    assert list(found["remedy"]) == ["text", "commands"]
    followed = next(r for r in report["results"] if r["code"] == "FRM-002")
    assert followed["consequence_of"] == "DRV-002"


def test_the_text_obeys_the_schema_and_the_schema_can_refuse() -> None:
    schema = json_schema("report")
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good = as_json(*every_outcome(), facts=eight_gpus())
    validator.validate(good)
    validator.validate(as_json(facts=no_gpu()))
    for place, value in (("status", "fine"), ("results", {}), ("counts", {"pass": 1})):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({**good, place: value})


@pytest.mark.parametrize(
    ("outcomes", "status", "the_worst"),
    [
        (["pass", "could-not-run", "fail", "warn"], "broken", "fail"),
        (["warn", "could-not-run", "pass"], "silent", "could-not-run"),
        (["pass", "warn", "skipped"], "healthy", "warn"),
        (["skipped", "pass"], "healthy", "pass"),
        (["skipped"], "healthy", "skipped"),
        ([], "healthy", "skipped"),
    ],
)
def test_the_status_is_that_of_the_worst_outcome(
    outcomes: list[str], status: str, the_worst: str
) -> None:
    results = [result(f"HOST-{n:03}", "host", outcome) for n, outcome in enumerate(outcomes)]
    assert (status_of(results), worst(results)) == (status, the_worst)
    assert report_of(*results).status == status
