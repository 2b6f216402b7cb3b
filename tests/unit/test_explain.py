"""`envcheck explain`: one code in full, the table of all, and the checks that mention a word, best first."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest

from envcheck.checks.registry import Check
from envcheck.cli.main import run
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import Verdict
from envcheck.reports.explain import explain, explain_all


def nothing(view: SnapshotView) -> Iterator[Verdict]:
    yield from ()


MISMATCH = Check(
    code="DRV-002",
    area="driver",
    title="The kernel module and the libraries are of one version",
    about="After an upgrade the loaded module stays the old one – until the machine is rebooted. "
    "Every program that uses CUDA then stops at once [sic].\n\nIt is judged by comparing both.",
    sources=(
        "lyulyul/shine-cluster#30; mozilla/translations#1167",
        "https://example.org/" + "x" * 80,
    ),
    follows=("PCI-001", "KRN-001"),
    judge=nothing,
)
OTHER = msgspec.structs.replace(MISMATCH, about="About.", sources=(), follows=())
HOST = msgspec.structs.replace(OTHER, code="HOST-001", area="host", title="word " * 30)


def test_one_code_in_full() -> None:
    text = explain(MISMATCH, {"PCI-001": "An NVIDIA device is there"})
    assert text.splitlines() == [
        "DRV-002 The kernel module and the libraries are of one version",
        "Area: Driver (driver)",
        "",
        "After an upgrade the loaded module stays the old one – until the machine is",
        "rebooted. Every program that uses CUDA then stops at once [sic].",
        "",
        "It is judged by comparing both.",
        "",
        "Shown as a consequence if one of these fails:",
        "  PCI-001 An NVIDIA device is there",
        "  KRN-001",
        "",
        "Sources:",
        "  lyulyul/shine-cluster#30; mozilla/translations#1167",
        "  https://example.org/" + "x" * 80,
        "",
        "The evidence and the remedy on this machine:",
        "envcheck doctor --only DRV-002",
    ]


def test_the_table_of_all_codes_by_area() -> None:
    text = explain_all([HOST, MISMATCH])
    lines = text.splitlines()
    assert lines[0] == "Host (host)"
    assert lines[1] == "  HOST-001  " + " ".join(["word"] * 13)
    assert lines[2] == " " * 12 + " ".join(["word"] * 13)
    assert "Driver (driver)" in lines
    assert "  DRV-002   The kernel module and the libraries are of one version" in lines
    assert lines[-1] == "envcheck explain CODE"
    assert all(len(line) <= 80 for line in lines)
    coloured = explain_all([HOST, MISMATCH], colour=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text


def codes(text: str) -> list[str]:
    return re.findall(r"^  ([A-Z]+-\d+) ", text, re.MULTILINE)


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run(["explain", *words]) == 0
    return codes(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "first", "among"),
    [
        (["protobuf"], "FRM-001", "FRM-001"),
        (["illegal", "instruction"], "HOST-002", "HOST-002"),
        (["nouveau"], "PCI-002", "PCI-002"),
    ],
)
def test_a_word_finds_the_checks_that_mention_it(
    capsys: pytest.CaptureFixture[str], words: list[str], first: str, among: str
) -> None:
    found = explained(capsys, *words)
    assert found[0] == first and among in found and len(found) < 20
