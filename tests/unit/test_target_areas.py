"""The checks on a target: a healthy one has no finding, and facts that were not had are no pass."""

from __future__ import annotations

from typing import Any

import pytest
from judged import checks_of, full_text
from targets import failed, good_snapshot, tensorflow

from envcheck.checks.engine import diagnose
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult

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
