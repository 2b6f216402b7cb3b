"""tests/gpu/first.sh: a lent GPU machine runs one command for ten minutes at most, and has no network."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "gpu"
SCRIPT = (FOLDER / "first.sh").read_text(encoding="utf-8")
STEPS = re.findall(r'^(?:if ! )?step "(.+?)" (\S+) ', SCRIPT, re.M)


@pytest.mark.parametrize("name", ["first.sh", "wheels.sh"])
def test_bash_takes_it(name: str) -> None:
    subprocess.run(["bash", "-n", FOLDER / name], check=True)


def test_the_soak_takes_what_is_left_of_nine_minutes_and_a_minute_at_the_least() -> None:
    limits = dict(STEPS)
    assert len(limits) == 10
    total = re.search(r"^soak=\$\(\((\d+) - SECONDS - (\d+)\)\)", SCRIPT, re.M)
    assert total is not None
    nine_minutes, kept = map(int, total.groups())
    assert nine_minutes == 540
    assert kept == int(limits["the GPU tests"]) + 13
    assert limits.pop("a soak, by the driver alone") == "$((soak+13))"
    fixed = sum(int(seconds) for name, seconds in limits.items() if name != "the GPU tests")
    assert nine_minutes - fixed - kept >= 60


def test_the_order_of_what_is_run() -> None:
    """The wheels are looked at first; nothing is asserted before all facts are kept."""
    names = [name for name, _ in STEPS]
    assert names[:2] == ["look at the wheels", "install envcheck"] and names[-1] == "the GPU tests"
    assert "pytest -q" not in SCRIPT.partition('step "the GPU tests"')[0]
    assert int(dict(STEPS)["install envcheck"]) >= 120
