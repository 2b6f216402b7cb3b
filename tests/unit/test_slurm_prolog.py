"""The text of the script for Slurm."""

from __future__ import annotations

import re

import pytest

from envcheck.cli.main import run
from envcheck.fleet.engines import slurm_prolog


def script(
    *envcheck: str, strict: bool = False, log: str = "/var/log/e", only: tuple[str, ...] = ()
) -> str:
    return slurm_prolog.script(
        envcheck or ["/usr/bin/envcheck"],
        level="quick",
        only=only,
        deadline=20.0,
        strict=strict,
        log=log,
    )


def test_what_was_asked_for_stands_in_it_and_is_quoted() -> None:
    text = script("/opt/my envcheck/bin/python", "-m", "envcheck", only=("driver", "GPU-001"))
    assert (
        "\nset -- '/opt/my envcheck/bin/python' -m envcheck doctor --level quick --only driver GPU-001\n"
        in text
    )
    assert "\nDEADLINE=20\nSTRICT=no\nLOG=/var/log/e\n" in text
    assert "\nSTRICT=yes\n" in script(strict=True)
    assert "\nLOG='/a $(b)'\n" in script(log="/a $(b)")
    assert text.startswith("#!/bin/sh\n") and not re.search("@[A-Z]+@", text)


def test_slurm_is_called_only_where_the_node_is_drained() -> None:
    body = script().partition("\ndrain() {\n")
    assert "scontrol" not in re.sub("#.*", "", body[0])
    assert "scontrol" not in body[2].partition("\n}\n")[2]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--envcheck", "bin/envcheck"], "the path has to be absolute"),
        (["--log", "a\nb"], "the path has to be absolute"),
        (["--only", "drivers"], "drivers: no check's code"),
    ],
)
def test_what_would_fail_on_every_node_is_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fleet", "slurm-prolog", *words]) == 2
    assert told in capsys.readouterr().err
