"""--only and --skip: what is declared that checks need is enough, and nothing else is looked at."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import pytest
from modes_well import WELL
from test_failure_modes import OTHERS, ROWS

from envcheck.checks.engine import diagnose, needed_sections
from envcheck.checks.registry import Check, all_checks, areas
from envcheck.cli import sources
from envcheck.cli.main import run
from envcheck.collection import Collected
from envcheck.collector import probes
from envcheck.facts.snapshot import MACHINE_SECTIONS, TARGET_SECTIONS, Document, Snapshot
from envcheck.findings.model import CheckResult


@functools.cache
def snapshots() -> list[Snapshot]:
    made = [make() for make, _told in (*ROWS.values(), *OTHERS.values())]
    return [*made, *(make() for make in WELL.values())]


def by_itself(check: Check, snapshot: Snapshot) -> CheckResult:
    (result,) = diagnose(snapshot, checks=[check]).results
    return result


def with_sections(document: Document | None, kept: frozenset[str]) -> Any:
    names = (MACHINE_SECTIONS | TARGET_SECTIONS) - kept
    return None if document is None else msgspec.structs.replace(document, **dict.fromkeys(names))


def restricted(snapshot: Snapshot, kept: frozenset[str]) -> Snapshot:
    target = None if TARGET_SECTIONS.isdisjoint(kept) else with_sections(snapshot.target, kept)
    machine = with_sections(snapshot.machine, kept)
    return msgspec.structs.replace(snapshot, machine=machine, target=target)


@pytest.mark.parametrize("area", areas())
def test_a_check_says_the_same_with_its_declared_sections_alone(area: str) -> None:
    checks = [check for check in all_checks() if check.area == area]
    for snapshot in snapshots():
        for check in checks:
            if check.code == "DRV-010":  # on whatever probe hangs: what did not run, did not hang
                continue
            whole = by_itself(check, snapshot)
            part = by_itself(check, restricted(snapshot, check.sections))
            assert part == whole, check.code


def test_every_area_and_no_other_section_is_named() -> None:
    assert set(probes.of("machine")) == MACHINE_SECTIONS
    assert {"interpreter", *probes.of("target")} == TARGET_SECTIONS
    for check in all_checks():
        assert "host" in check.sections, check.code  # which says how a remedy is written
        assert check.sections <= MACHINE_SECTIONS | TARGET_SECTIONS | {
            "micro_kernels",
            "extensions",
        }


@pytest.mark.parametrize(
    ("only", "skip", "sections"),
    [
        (["pci"], [], "host pci kernel nvml nvidia_smi"),
        (["DRV-002"], [], "host pci kernel nvml nvidia_smi cuda"),
        (["PKG-001"], [], "host interpreter packages"),
        (["host", "config"], [], "host kernel interpreter packaging_config packages"),
        (["pci", "gpu"], ["gpu"], "host pci kernel nvml nvidia_smi"),
    ],
)
def test_what_is_needed(only: list[str], skip: list[str], sections: str) -> None:
    assert needed_sections(only, skip) == set(sections.split())


def test_a_whole_snapshot_and_a_live_run_give_the_same() -> None:
    """A target that needs no GPU is no excuse where the target is not looked at."""
    for snapshot in snapshots():
        for only in (["pci"], ["driver", "gpu"], ["config"], ["PKG-001", "HOST-001"]):
            needed = needed_sections(only, ())
            assert diagnose(snapshot, only) == diagnose(restricted(snapshot, needed), only)


@pytest.mark.parametrize(
    ("words", "target", "only"),
    [
        (["--only", "pci"], None, {"host", "pci", "kernel", "nvml", "nvidia_smi"}),
        (["--only", "config"], "/t", areas()["config"].needs),
        ([], "/t", set()),
    ],
)
def test_the_doctor_collects_what_is_needed(
    words: list[str], target: str | None, only: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def collect(where: str | None, **given: Any) -> Collected:
        asked.update(given, target=where)
        return Collected(WELL[next(iter(WELL))](), {})

    monkeypatch.setattr(sources.collection, "collect", collect)
    run(["doctor", *words, "--target", "/t", "--level=quick", "--output", "/dev/null"])
    assert asked["target"] == target and set(asked["only"]) == only
