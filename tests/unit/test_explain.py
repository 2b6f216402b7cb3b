"""`envcheck explain`: one code in full, and the table of all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

import msgspec

from envcheck.checks.registry import Check
from envcheck.collector.kernels.vectors import VECTORS, encode
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import Verdict
from envcheck.reports.explain import explain, explain_all, explain_page
from envcheck.tensorcores.model import multiply_add


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
TENSOR = msgspec.structs.replace(
    OTHER, code="TC-001", area="tensorcores", title="Tensor Cores engage"
)
HOST = msgspec.structs.replace(OTHER, code="HOST-001", area="host", title="word " * 30)


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
    assert plain(explain_all([HOST, MISMATCH], colour=True)) == text


def words(name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A vector's a and b as FP16 words."""
    vector = VECTORS[name]
    a, b = (tuple(encode(x, "fp16") for x in values) for values in (vector.a, vector.b))
    return a, b


def by_tensor_core(name: str, compute_capability: str) -> str:
    a, b = words(name)
    zeros = (0,) * (16 - len(a))
    return f"{multiply_add(a + zeros, b + zeros, 0, 'fp16', 'fp32', compute_capability):08X}"


def test_the_page_adds_s1_as_the_model_does() -> None:
    text = explain_page("tensor-cores")
    first, second = (x * y for x, y in zip(VECTORS["S1"].a, VECTORS["S1"].b, strict=True))
    assert (first, second) == (1, Fraction(3, 2) / 2**23)
    assert "    1 × 1               = 1\n    2^-12 × 1.5 × 2^-11 = 1.5 × 2^-23\n" in text
    told = dict(re.findall(r"^    (CUDA core|Tensor Core) .* ([0-9A-F]{8})$", text, re.MULTILINE))
    assert {by_tensor_core("S1", cc) for cc in ("7.0", "8.0", "9.0")} == {told["Tensor Core"]}
    assert encode(Fraction(1), "fp32") == 0x3F800000
    assert encode(1 + Fraction(1, 2**23), "fp32") == 0x3F800001


CAPABILITIES = {
    "V100": "7.0",
    "T4": "7.5",
    "A100": "8.0",
    "Ada": "8.9",
    "H100": "9.0",
    "B200": "10.0",
}
