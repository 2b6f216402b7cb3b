"""The text of the script for Slurm."""

from __future__ import annotations

import re

import pytest

from envcheck.cli.main import run
from envcheck.fleet.engines import slurm_prolog


def script() -> str:
    return slurm_prolog.script(["/usr/bin/envcheck"], limit=2.5, deadline=20.0, fail_on="fail")


def test_every_command_that_may_hang_has_a_limit() -> None:
    """Slurm's commands, envcheck and the log are started by ``limited`` alone."""
    lines = [line.strip() for line in script().splitlines() if not line.strip().startswith("#")]
    for word in ("sinfo ", "scontrol ", "/usr/bin/envcheck ", '"$LOG"'):
        starts = [line for line in lines if word in line]
        assert all(re.match(r"(?:limited|of_envcheck) \S+ ", line) for line in starts), starts


def test_a_relative_path_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "slurm-prolog", "--envcheck", "bin/envcheck"]) == 2
    assert "the path must be absolute" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--limit", "0"], "'0' is not a percentage"),
        (["--limit", "nan"], "'nan' is not a percentage"),
        (["--limit", "101"], "'101' is not a percentage"),
        (["--strict"], "there is no option"),
    ],
)
def test_a_limit_is_a_percentage_and_envchecks_own_failure_never_drains(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["fleet", "slurm-prolog", *words])
    assert ended.value.code == 2 and error in capsys.readouterr().err
