"""One machine of a fleet is judged: files that are no Snapshot cost themselves, packed ones are read."""

from __future__ import annotations

import os
from pathlib import Path

from h100 import VICTIM, gpu, machine, with_fault
from whole import whole

from envcheck.facts import snapshot as snapshots
from envcheck.fleet.folder import FleetFolder, Member
from envcheck.fleet.groups import grouped
from envcheck.fleet.judging import judge_file, judge_snapshot
from envcheck.fleet.model import JudgedMachine

WELL = snapshots.dump(whole())


def put(folder: Path) -> dict[str, str]:
    """Files that are no Snapshot: {name: what is said of it}."""
    (folder / "empty.json").touch()
    (folder / "garbage.json").write_bytes(b"\x1b[31mWelcome\x1b[0m {}\n")
    (folder / "cut.json").write_bytes(WELL[: len(WELL) // 2])
    (folder / "newer.json").write_bytes(WELL.replace(b'"schema": 1', b'"schema": 99'))
    (folder / "other.json").write_bytes(b'{"a": [1, 2]}')
    (folder / "deep.json").write_bytes(b"[" * 100_000)
    (folder / "directory.json").mkdir()
    (folder / "nowhere.json").symlink_to("/nonexistent/snapshot")
    os.mkfifo(folder / "fifo.json")
    with (folder / "large.json").open("wb") as file:
        file.truncate(100 << 20)
    return {
        "empty": "empty",
        "garbage": "not valid JSON",
        "cut": "not valid JSON",
        "newer": "upgrade envcheck",
        "other": "not a Snapshot",
        "deep": "does not fit",
        "directory": "directory",
        "nowhere": "no Snapshot",
        "fifo": "no file",
        "large": "larger than 64 MiB",
    }


def test_what_is_no_snapshot_costs_itself_alone(tmp_path: Path) -> None:
    expected = put(tmp_path)
    (tmp_path / "well.json").write_bytes(WELL)
    folder = FleetFolder(tmp_path)
    found = {
        member.name: judge_file(member, folder.file(member.name)) for member in folder.members()
    }
    assert found.keys() == {*expected, "well"}
    for name, words in expected.items():
        assert found[name].answer == "unreadable" and words in found[name].reason
        assert "\x1b" not in found[name].reason and "\n" not in found[name].reason
    assert found["well"].state == "healthy" and found["well"].product


def test_names_that_others_gave_their_files(tmp_path: Path) -> None:
    for name in ("my host.json", ".hidden.json", "a%2Fb.json", "._gpu1.json", "notes.txt"):
        (tmp_path / name).write_bytes(WELL)
    folder = FleetFolder(tmp_path)
    members = folder.members()
    assert [member.name for member in members] == [".hidden", "a/b", "my host"]
    assert {judge_file(member, folder.file(member.name)).state for member in members} == {"healthy"}


def remapped(name: str, victim: int) -> JudgedMachine:
    pending = {"remap_pending": True, "remap_uncorrectable": 1}
    gpus = [gpu(n, **(pending if n == victim else {})) for n in range(8)]
    return judge_snapshot(Member(name=name), machine(gpus))[0]


def test_the_same_problem_of_other_devices_is_one_group() -> None:
    groups = grouped([remapped("gpu10", 1), remapped("gpu2", 5), remapped("gpu3", 5)])
    (group,) = [one for one in groups if one.code == "GPU-003"]
    assert group.machines == ["gpu2", "gpu3", "gpu10"]
    assert group.hosts == "gpu[2-3,10]"
    assert group.of_one == "gpu2"  # GPU 5's address is in its commands


def test_another_remedy_is_another_group() -> None:
    pending = with_fault(remap_pending=True, remap_uncorrectable=1)
    broken = with_fault(remap_failed=True, remap_uncorrectable=1)
    machines = [
        judge_snapshot(Member(name=name), one)[0]
        for name, one in (("a", pending), ("b", broken), ("c", pending))
    ]
    groups = [one.machines for one in grouped(machines) if one.code == "GPU-003"]
    assert sorted(groups) == [["a", "c"], ["b"]]
    assert any(str(VICTIM) in device for device in machines[0].problems[0].devices)


def test_of_several_devices_a_machine_has_one_problem() -> None:
    reasons = {"clock_event_reasons": ["hw_thermal_slowdown"], "temperature_c": 88}
    found = judge_snapshot(Member(name="a"), machine([gpu(n, **reasons) for n in range(8)]))[0]
    (problem,) = [one for one in found.problems if one.code == "GPU-008"]
    assert len(problem.devices) == 8
