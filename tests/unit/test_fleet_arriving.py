"""Snapshots from standard input: lines with a name in front."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from whole import whole

from envcheck.exit_codes import UsageError
from envcheck.facts import snapshot as snapshots
from envcheck.fleet import arriving
from envcheck.fleet.folder import FleetFolder, Member

INDENTED = snapshots.dump(whole())
LINE = b"".join(line.strip() for line in INDENTED.splitlines()) + b"\n"


def arrive(data: bytes, folder: Path) -> list[Member]:
    return arriving.unpack(io.BufferedReader(io.BytesIO(data)), FleetFolder(folder))  # type: ignore[arg-type]


def named(name: str, data: bytes) -> bytes:
    return b"".join(f"{name}: ".encode() + line for line in data.splitlines(keepends=True))


def test_lines_with_names_in_any_order(tmp_path: Path) -> None:
    ones, others = named("gpu1", INDENTED).splitlines(True), named("gpu2", LINE).splitlines(True)
    mixed = b"".join([ones[0], *others, *ones[1:], named("gpu3", b"sh: python3: not found\n")])
    found = arrive(mixed, tmp_path)
    assert [(one.name, one.outcome) for one in found] == [
        ("gpu1", "answered"),
        ("gpu2", "answered"),
        ("gpu3", "unreadable"),
    ]


def test_what_kubectl_prints(tmp_path: Path) -> None:
    assert [one.name for one in arrive(b"[pod/envcheck-x7k2p/envcheck] " + LINE, tmp_path)] == [
        "envcheck-x7k2p"
    ]


WRONG = {
    "nothing": (b"", "no line has"),
    "blank lines": (b"\n\n", "no line has"),
    "no name": (LINE, "no line has"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_is_one_sentence(kind: str, tmp_path: Path) -> None:
    data, told = WRONG[kind]
    with pytest.raises(UsageError, match=told):
        arrive(data, tmp_path)


def test_two_answers_of_one_machine_are_no_snapshot(tmp_path: Path) -> None:
    (found,) = arrive(named("a", LINE) + b"[pod/a/c] " + LINE, tmp_path)
    assert found.outcome == "unreadable"


def test_names_cannot_leave_the_directory(tmp_path: Path) -> None:
    assert arrive(named("../../etc/passwd", LINE), tmp_path)[0].name == "../../etc/passwd"
    assert sorted(p.name for p in tmp_path.parent.iterdir() if p.name == "etc") == []
