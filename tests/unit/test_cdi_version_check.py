"""The check on CDI versions, and the table behind it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from test_container_checks import APPTAINER, DOCKER, PODMAN, READY, SPEC, commands, judge, only

from envcheck.data import cdi_versions, table
from envcheck.facts.host import Host

NEWER = replace(SPEC, version="0.7.0")


@pytest.mark.parametrize(
    ("podman", "cdi", "rejected"),
    [
        ("4.2.0", "0.4.0", False),
        ("4.2.0", "0.5.0", True),
        ("4.3.1", "0.5.0", False),
        ("4.3.1", "0.6.0", True),
        ("4.3.1", "1.0.0", True),
        ("4.9.3+ds1", "0.7.0", True),
        ("4.9.4-rhel", "0.6.0", None),
        ("5.7.0", "0.7.0", False),
        ("5.7.0", "1.1.0", None),
        ("5.0.0", "0.7.0", None),
        ("4.0.0", "0.3.0", None),
        ("", "0.5.0", None),
        ("4.3.1", "", None),
    ],
)
def test_what_a_podman_reads(podman: str, cdi: str, rejected: bool | None) -> None:
    assert cdi_versions.rejects("podman", podman, cdi) is rejected


def test_every_row_has_a_source_and_says_something() -> None:
    for row in table("cdi_versions"):
        assert row["source"] and (row["accepts"] or row["rejects"])


def test_a_specification_that_is_too_new() -> None:
    debian = Host(os_id="debian")
    finding = only(judge("CTR-007", replace(READY, cdi_specs=[NEWER]), host=debian))
    assert "CDI version 0.7.0, and podman 4.3.1 reads none from 0.6.0 on" in finding.message
    assert finding.subject == SPEC.path
    assert "nvidia-container-toolkit-base=1.18.2-1" in commands(finding)


def test_a_specification_that_is_read() -> None:
    result = judge("CTR-007", READY)
    assert result.outcome == "pass" and "CDI 0.5.0, which podman 4.3.1 reads" in result.detail


@pytest.mark.parametrize(
    ("engines", "version"),
    [([DOCKER, APPTAINER], "0.7.0"), ([replace(PODMAN, server_version="5.0.0")], "0.7.0")],
)
def test_no_podman_or_nothing_known_is_no_verdict(engines: list[object], version: str) -> None:
    ready = replace(READY, engines=engines, cdi_specs=[replace(SPEC, version=version)])
    assert judge("CTR-007", ready).outcome == "skipped"
