"""--only and --skip change no verdict: what a check says alone is what it says among all others."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from known_machines import machines, profile
from whole import whole

sys.path.insert(0, str(Path(__file__).parents[1]))

import sections_read

from envcheck.checks import sections
from envcheck.checks.engine import diagnose
from envcheck.checks.registry import all_checks, areas
from envcheck.cli import sources
from envcheck.cli.main import run
from envcheck.collection import Collected
from envcheck.collector import probes
from envcheck.facts.recording import SECTIONS
from envcheck.facts.snapshot import MACHINE_SECTIONS, TARGET_SECTIONS, Document, Snapshot
from envcheck.findings.model import CheckResult

CHECKS = {check.code: check for check in all_checks()}


def one_of(number: int) -> pytest.MarkDecorator:
    """Every demo and, usually, one of so many other machines; all of them with -m slow."""
    every = pytest.param(1, marks=pytest.mark.slow, id="all")
    return pytest.mark.parametrize("turns", [pytest.param(number, id="some"), every])


@functools.cache
def among_all(machine: str) -> dict[str, CheckResult]:
    found = diagnose(machines()[machine], profile=profile()).results
    return {result.code: result for result in found}


def collected(snapshot: Snapshot, kept: frozenset[str]) -> Snapshot:
    """What a live look that collects these sections has of it."""
    return msgspec.structs.replace(
        snapshot,
        machine=with_sections(snapshot.machine, kept),
        target=None if snapshot.target is None else with_sections(snapshot.target, kept),
    )


def with_sections(document: Document, kept: frozenset[str]) -> Document:
    others = dict.fromkeys(SECTIONS - kept - {"extensions"})
    extensions = document.extensions if "extensions" in kept else {}
    return msgspec.structs.replace(document, **others, extensions=extensions)


def alone(snapshot: Snapshot, only: list[str]) -> dict[str, CheckResult]:
    """As the doctor does it: what is needed, and everything where that was not all."""
    needed = sections.needed(only, ())
    part = collected(snapshot, needed)
    if sections.missing(part, needed, only, (), profile()):
        part = snapshot
    return {r.code: r for r in diagnose(part, only, profile=profile()).results}


def assert_same(machine: str, only: list[str], codes: list[str]) -> None:
    whole, part = among_all(machine), alone(machines()[machine], only)
    for code in codes:
        root = whole[code].consequence_of
        if root in codes or not root:
            assert part[code] == whole[code], f"{code} of {machine}"
        else:  # what explains it was left out: it stands for itself, and is not fine
            judged = part[code].consequence_of or code
            assert part[judged].outcome in ("fail", "warn", "could-not-run"), f"{code} of {machine}"


@one_of(30)
@pytest.mark.parametrize("area", areas())
def test_a_check_says_the_same_alone(area: str, turns: int) -> None:
    codes = [check.code for check in CHECKS.values() if check.area == area]
    for number, machine in enumerate(machines()):
        for place, code in enumerate(codes):
            if machine.startswith("demo ") or (number + place) % turns == 0:
                assert_same(machine, [code], [code])


def test_what_is_recorded_is_in_the_table() -> None:
    demos = [one for name, one in machines().items() if name.startswith("demo ")]
    assert list(sections.table()) == list(CHECKS)
    for code, check in CHECKS.items():
        assert sections_read.read_by(check, demos) <= sections.table()[code], (
            "run tests/generate.py"
        )


def test_every_probe_is_a_section() -> None:
    assert set(probes.of("machine")) == MACHINE_SECTIONS
    assert {"interpreter", *probes.of("target")} == TARGET_SECTIONS
    assert SECTIONS >= sections.PROBES


@pytest.mark.parametrize(
    ("only", "skip", "found"),
    [
        (["HOST-001"], [], "host"),
        (["HOST-008"], [], "host nvidia_smi nvml"),
        (["config"], [], "host packaging_config"),
        (["host", "HOST-001"], ["host"], "host"),
        (["GPU-001"], [], "host kernel nvidia_smi nvml pci"),  # and what explains it: no GPU
    ],
)
def test_what_is_needed(only: list[str], skip: list[str], found: str) -> None:
    assert sections.needed(only, skip) == set(found.split())


def test_a_target_that_needs_no_gpu_excuses_the_same_checks() -> None:
    machine = "demo without a GPU, for a target that needs none"
    excused = [
        code
        for code, result in among_all(machine).items()
        if result.reason.startswith("the target needs no GPU")
    ]
    assert {"PCI-001", "GPU-001", "DRV-001"} <= set(excused)
    for code in excused:
        assert alone(machines()[machine], [code])[code] == among_all(machine)[code]


@pytest.mark.parametrize(
    ("words", "looks"),
    [
        (["--only", "HOST-001"], [{"host"}]),
        (["--only", "config"], [{"host", "packaging_config"}]),
        ([], [set()]),
    ],
)
def test_the_doctor_collects_what_is_needed(
    words: list[str], looks: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asked_by_the_doctor(words, whole(), monkeypatch)
    assert [set(one["only"]) for one in asked] == looks
    assert {one["target"] for one in asked} == {"/t"}


def test_the_doctor_looks_again_where_a_check_reads_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "table", lambda: {"HOST-008": frozenset(("host",))})
    asked = asked_by_the_doctor(["--only", "HOST-008"], whole(), monkeypatch)
    assert [set(one["only"]) for one in asked] == [{"host"}, set()]


def asked_by_the_doctor(
    words: list[str], snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = []

    def collect(where: str | None, **given: Any) -> Collected:
        asked.append(given | {"target": where})
        return Collected(snapshot, {})

    monkeypatch.setattr(sources.collection, "collect", collect)
    run(["doctor", *words, "--target", "/t", "--level=quick", "--output", "/dev/null"])
    return asked
