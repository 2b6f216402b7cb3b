"""Snapshots from standard input: an archive, lines with names, files one after the other."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from whole import whole

from envcheck.exit_codes import UsageError
from envcheck.facts import snapshot as snapshots
from envcheck.fleet import arriving
from envcheck.fleet.folder import FleetFolder, Member, Roster

INDENTED = snapshots.dump(whole())
LINE = b"".join(line.strip() for line in INDENTED.splitlines()) + b"\n"


def arrive(data: bytes, folder: Path) -> list[Member]:
    return arriving.unpack(io.BufferedReader(io.BytesIO(data)), FleetFolder(folder))  # type: ignore[arg-type]


def archive(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode=mode) as tar:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return written.getvalue()


def named(name: str, data: bytes) -> bytes:
    return b"".join(f"{name}: ".encode() + line for line in data.splitlines(keepends=True))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_an_archive(mode: str, tmp_path: Path) -> None:
    files = {"./a.json": INDENTED, "deep/b.json": LINE, "../c.json": LINE, "README": b"x"}
    found = arrive(archive(files, mode), tmp_path)
    assert [one.name for one in found] == ["a", "b", "c"]
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "b.json", "c.json"}


def test_an_archive_with_a_roster(tmp_path: Path) -> None:
    import msgspec

    members = [
        Member(name="a", groups=[("group", "rack-1")]),
        Member(name="b", outcome="unreachable", reason="No route to host"),
        Member(name="c"),
    ]
    roster = msgspec.json.encode(Roster(schema=1, engine="ansible", members=members))
    a, b, c, d = arrive(archive({"a.json": LINE, "fleet.json": roster, "d.json": LINE}), tmp_path)
    assert (a, b) == (members[0], members[1])
    assert (c.outcome, c.reason) == ("unreadable", "its Snapshot is not in the archive")
    assert d == Member(name="d")


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


def test_files_one_after_the_other_are_called_by_their_hosts_or_counted(tmp_path: Path) -> None:
    told = INDENTED.replace(b'"<host-1>"', b'"train-07"', 1)
    assert told != INDENTED
    found = arrive(INDENTED + told + LINE, tmp_path)
    assert [one.name for one in found] == ["machine-1", "machine-3", "train-07"]
    assert {one.outcome for one in found} == {"answered"}


WRONG = {
    "nothing": (b"", "it is empty"),
    "blank lines": (b"\n\n", "it is empty"),
    "an empty archive": (archive({}), "no NAME.json"),
    "a cut archive": (archive({"a.json": LINE})[:700], "cannot be read"),
    "a broken roster": (archive({"a.json": LINE, "fleet.json": b"{"}), r"fleet\.json"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_is_one_sentence(kind: str, tmp_path: Path) -> None:
    data, told = WRONG[kind]
    with pytest.raises(UsageError, match=told):
        arrive(data, tmp_path)


def test_two_files_of_one_name_in_an_archive_cost_that_name_alone(tmp_path: Path) -> None:
    a, c = arrive(archive({"a.json": LINE, "b/a.json": LINE, "c.json": LINE}), tmp_path)
    assert (a.outcome, a.reason) == ("unreadable", "2 Snapshots came under this name")
    assert c == Member(name="c")


def test_two_answers_of_one_machine_are_no_snapshot(tmp_path: Path) -> None:
    (found,) = arrive(named("a", LINE) + b"[pod/a/c] " + LINE, tmp_path)
    assert found.outcome == "unreadable"


def test_names_cannot_leave_the_directory(tmp_path: Path) -> None:
    arrive(archive({"..json": LINE, "a\x1b[31m.json": LINE}), tmp_path / "")
    assert all(path.parent == tmp_path for path in tmp_path.iterdir())
    assert arrive(named("../../etc/passwd", LINE), tmp_path)[0].name == "../../etc/passwd"
    assert sorted(p.name for p in tmp_path.parent.iterdir() if p.name == "etc") == []
