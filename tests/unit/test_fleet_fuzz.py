"""A few thousand of the inputs of which benchmarks/fleet_hostile.py tries a million."""

from __future__ import annotations

from pathlib import Path

import fleet_fuzz
import pytest
from whole import whole

from envcheck.facts import snapshot as snapshots


@pytest.mark.parametrize("target", fleet_fuzz.TARGETS)
def test_no_input_ends_more_than_its_machine(target: str, tmp_path: Path) -> None:
    fleet_fuzz.fuzz(target, 0, 1500, tmp_path, snapshots.dump(whole()))
