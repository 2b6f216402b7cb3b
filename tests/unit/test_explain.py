"""`envcheck explain`: one code in full, and the table of all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.checks.registry import Check, Verdict
from envcheck.checks.view import View
from envcheck.reports.explain import explain, explain_all


def nothing(view: View) -> Iterator[Verdict]:
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
HOST = Check("HOST-001", "host", "word " * 30, "About.", (), (), nothing)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


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
        "Shown as a consequence where one of these fails:",
        "  PCI-001 An NVIDIA device is there",
        "  KRN-001",
        "",
        "Where the knowledge comes from:",
        "  lyulyul/shine-cluster#30; mozilla/translations#1167",
        "  https://example.org/" + "x" * 80,
        "",
        "The evidence and the remedy on this machine:",
        "envcheck doctor --only DRV-002",
    ]


def test_what_a_check_does_not_have_is_left_out() -> None:
    text = explain(HOST)
    assert "consequence" not in text and "knowledge" not in text
    assert "envcheck doctor --only HOST-001" in text


def test_colour_and_ascii_change_no_word() -> None:
    assert plain(explain(MISMATCH, colour=True)) == explain(MISMATCH)
    assert "\x1b" not in explain(MISMATCH) and "\x1b" in explain(MISMATCH, colour=True)
    assert explain(MISMATCH, utf8=False) == explain(MISMATCH).replace("–", "-")


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
    assert plain(explain_all([HOST, MISMATCH], colour=True)) == text


def test_an_empty_table_says_how_to_ask() -> None:
    assert explain_all([]).endswith("envcheck explain CODE\n")
