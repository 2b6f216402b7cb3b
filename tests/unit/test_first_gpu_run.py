"""tests/gpu/first.sh: a lent GPU machine runs one command for ten minutes at most, and has no network."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "gpu"
SCRIPT = (FOLDER / "first.sh").read_text(encoding="utf-8")
STEPS = re.findall(r'^step "(.+)" (\d+) (\S+)', SCRIPT, re.M)


@pytest.mark.parametrize("name", ["first.sh", "wheels.sh"])
def test_bash_takes_it(name: str) -> None:
    subprocess.run(["bash", "-n", FOLDER / name], check=True)


def test_all_steps_together_take_nine_minutes_at_most() -> None:
    assert len(STEPS) == 9
    assert sum(int(seconds) for _, seconds, _ in STEPS) <= 530


def test_nothing_is_asserted_before_all_facts_are_kept() -> None:
    assert [name for name, _, _ in STEPS][-1] == "the GPU tests"
    assert "pytest -q" not in SCRIPT.partition('step "the GPU tests"')[0]
