"""Areas whose checks are not imported, because a Snapshot has nothing for them."""

from __future__ import annotations

import pytest
from known_machines import machines

from envcheck.checks import foreign
from envcheck.checks.registry import all_checks, areas, listed
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import Unjudged, Verdict

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
