"""The directory of a fleet: names that are no file's, answers that are no Snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole import whole

from envcheck.facts import snapshot as snapshots
from envcheck.fleet.folder import NETWORK, FleetFolder, Member, file_name

HOSTILE = (
    "../../etc/passwd",
    "a/b",
    ".hidden",
    "fleet",
    "index",
    "network",
    "ein Wirt",
    "\x1b[31m",
    "%41",
    "",
)


def test_almost_all_names_are_kept_as_they_are() -> None:
    assert file_name("gpu-07.rack3.example.org") == "gpu-07.rack3.example.org"


@pytest.mark.parametrize("name", HOSTILE[:-1])
def test_a_name_that_is_no_file_s_cannot_leave_the_directory(tmp_path: Path, name: str) -> None:
    folder = FleetFolder(tmp_path)
    (tmp_path / NETWORK).write_text("of `fleet network`")
    member = folder.keep(name, snapshots.dump(whole()), [])
    assert member == Member(name=name)
    assert folder.file(name).parent == tmp_path and folder.file(name).is_file()
    assert [member.name for member in folder.members()] == [name]
    assert [member.name for member in folder.members()] == [name], "a second time, too"
    assert (tmp_path / NETWORK).read_text() == "of `fleet network`", "no machine's"


def test_no_two_names_share_a_file() -> None:
    assert len({file_name(name) for name in HOSTILE}) == len(HOSTILE)


def test_a_roster_s_machines_without_a_snapshot_are_kept(tmp_path: Path) -> None:
    dead = Member(name="b", outcome="unreachable", reason="No route to host")
    FleetFolder(tmp_path).write_roster("ansible", [dead, Member(name="a")])
    assert FleetFolder(tmp_path).members() == [Member(name="a"), dead]
