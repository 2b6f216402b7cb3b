"""The check on CDI versions, and the table behind it."""

from __future__ import annotations

from judged import commands
from msgspec.structs import replace
from test_container_checks import READY, SPEC, judge, only

from envcheck.data import table
from envcheck.facts.host import Host

NEWER = replace(SPEC, version="0.7.0")


def test_every_row_has_a_source_and_says_something() -> None:
    for row in table("cdi_versions"):
        assert row["source"] and (row["accepts"] or row["rejects"])


def test_a_specification_that_is_too_new() -> None:
    debian = Host(os_id="debian")
    finding = only(judge("CTR-007", replace(READY, cdi_specs=[NEWER]), host=debian))
    assert "CDI version 0.7.0, and podman 4.3.1 reads none from 0.6.0 on" in finding.message
    assert finding.subject == SPEC.path
    assert "nvidia-container-toolkit-base=1.18.2-1" in commands(finding)
