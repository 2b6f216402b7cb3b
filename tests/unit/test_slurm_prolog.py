"""The text of the script for Slurm."""

from __future__ import annotations

import re

import pytest

from envcheck.cli.main import run
from envcheck.fleet.engines import slurm_prolog


def script(*envcheck: str, log: str = "/var/log/e", only: tuple[str, ...] = ("gpu",)) -> str:
    return slurm_prolog.script(
        envcheck or ["/usr/bin/envcheck"], only=only, limit=2.5, deadline=20.0, log=log
    )


def test_every_command_that_may_hang_has_a_limit() -> None:
    """Slurm's commands, envcheck and the log are started by ``limited`` alone."""
    lines = [line.strip() for line in script().splitlines() if not line.strip().startswith("#")]
    for word in ("sinfo ", "scontrol ", "/usr/bin/envcheck ", '"$LOG"'):
        starts = [line for line in lines if word in line]
        assert all(re.match(r"(?:limited|of_envcheck) \S+ ", line) for line in starts), starts


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--envcheck", "bin/envcheck"], "the path must be absolute"),
        (["--log", "a\nb"], "the path must be absolute"),
        (["--only", "drivers"], "drivers: not a code"),
        (["--only", "driver", "host"], "--only host: a node is drained only for its driver"),
        (["--only", "HOST-005"], "--only HOST-005: a node is drained only for its driver"),
        (["--only", "GPU-017"], "--only GPU-017: a node is drained only for its driver"),
    ],
)
def test_what_would_fail_on_every_node_is_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fleet", "slurm-prolog", *words]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--limit", "0"], "'0' is not a percentage"),
        (["--limit", "nan"], "'nan' is not a percentage"),
        (["--limit", "101"], "'101' is not a percentage"),
        (["--strict"], "there is no option"),
    ],
)
def test_a_limit_is_a_percentage_and_envchecks_own_failure_never_drains(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["fleet", "slurm-prolog", *words])
    assert ended.value.code == 2 and told in capsys.readouterr().err
