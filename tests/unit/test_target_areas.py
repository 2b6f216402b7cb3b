"""The areas of checks: a healthy target has no finding, and what a Snapshot does not need is not imported."""

from __future__ import annotations

from typing import Any

import pytest
from judged import checks_of, full_text
from known_machines import machines
from targets import failed, good_snapshot, tensorflow

from envcheck.checks import foreign
from envcheck.checks.engine import diagnose
from envcheck.checks.registry import all_checks, areas, listed
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import CheckResult, Unjudged, Verdict

# What a check rests on, by its area: where it could not be had, the check could not run.
RESTS_ON: dict[str, dict[str, Any]] = {
    "config": {"packaging_config": failed()},
    "packages": {"packages": failed()},
    "environment": {"environment": failed()},
    "framework": {"tensorflow": failed("timeout", "the probe gave no answer within 90 s")},
    "libraries": {"loader": failed(), "tensorflow": tensorflow(gpus=[], libraries=[])},
}
# Which judge nothing of what failed here.
OF_ITS_OWN = {"PKG-016", "LIB-011", "LIB-012", "ENV-015"}


def results(snapshot: Snapshot, area: str) -> list[CheckResult]:
    return diagnose(snapshot, checks=checks_of([area])).results


@pytest.mark.parametrize("area", RESTS_ON)
def test_a_healthy_target_has_no_finding(area: str) -> None:
    for result in results(good_snapshot(), area):
        assert result.outcome in ("pass", "skipped"), full_text(result)


@pytest.mark.parametrize("area", RESTS_ON)
def test_facts_that_were_not_had_are_no_pass(area: str) -> None:
    for result in results(good_snapshot(**RESTS_ON[area]), area):
        if result.code not in OF_ITS_OWN:
            assert result.outcome == "could-not-run", (result.code, full_text(result))


AREAS = [area for area in areas().values() if area.section]


def test_the_table_lists_every_check() -> None:
    own = [(c.code, c.area, c.title) for c in all_checks()]
    assert [(row.check, row.area, row.title) for row in listed().values()] == own


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_its_checks_would_have_skipped_for_the_same_reason(area) -> None:  # type: ignore[no-untyped-def]
    checks = [check for check in all_checks() if check.area == area.name]
    snapshots = [one for one in machines().values() if not SnapshotView(one).has(area.section)]
    assert checks and snapshots
    for check in checks:
        for snapshot in snapshots:
            verdicts: list[Verdict] = []
            foreign.take(check, SnapshotView(snapshot), verdicts)
            assert verdicts == [Unjudged("skipped", area.without)], check.code
