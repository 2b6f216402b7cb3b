"""One machine of a fleet is judged: files that are no Snapshot cost themselves, packed ones are read."""

from __future__ import annotations

import os
from pathlib import Path

from h100 import VICTIM, gpu, machine, with_fault
from simulated_fleet import KINDS, base, faster, runs
from whole import whole

from envcheck.facts import snapshot as snapshots
from envcheck.facts.sharing import ManySnapshots
from envcheck.fleet.folder import FleetFolder, Member
from envcheck.fleet.groups import grouped
from envcheck.fleet.judging import ToJudge, judge_files, judge_snapshot
from envcheck.fleet.model import JudgedMachine

WELL = snapshots.dump(whole())


def judged(folder: FleetFolder) -> dict[str, JudgedMachine]:
    """Every machine of a directory, by its name."""
    many = ManySnapshots()
    return {
        member.name: judge_files(
            ToJudge(member=member, files=list(map(str, folder.files(member.name)))), many
        )
        for member in folder.members()
    }


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
    found = judged(FleetFolder(tmp_path))
    assert found.keys() == {*expected, "well"}
    for name, words in expected.items():
        assert found[name].answer == "unreadable" and words in found[name].reason
        assert "\x1b" not in found[name].reason and "\n" not in found[name].reason
    assert found["well"].state == "healthy" and found["well"].product


def test_names_that_others_gave_their_files(tmp_path: Path) -> None:
    for name in ("my host.json", ".hidden.json", "a%2Fb.json", "._gpu1.json", "notes.txt"):
        (tmp_path / name).write_bytes(WELL)
    found = judged(FleetFolder(tmp_path))
    assert list(found) == [".hidden", "a/b", "my host"]
    assert {machine.state for machine in found.values()} == {"healthy"}


def at(share: float) -> bytes:
    """A machine with rates of so much."""
    snapshot = base(*KINDS[0][:3])
    return snapshots.dump(runs(snapshot, lambda run: faster(run, lambda: share)))


def test_several_snapshots_of_a_machine_are_one_with_the_mean_of_its_rates(tmp_path: Path) -> None:
    files = {"a": 1.0, "a.2": 1.02, "a.3": 1.04, "b": 1.0, "c.2": 1.0, "10.0.0.2": 1.0}
    for name, share in files.items():
        whose = f"GPU-{name[0]}".encode()
        (tmp_path / f"{name}.json").write_bytes(at(share).replace(b"GPU-<uuid", whose))
    found = judged(FleetFolder(tmp_path))
    assert {name: one.looks for name, one in found.items()} == {
        "10.0.0.2": 1, "a": 3, "b": 1, "c.2": 1,
    }  # fmt: skip
    pairs = zip(found["a"].rates, found["b"].rates, strict=True)
    assert {round(a.value / b.value, 3) for a, b in pairs} == {1.02}
    (tmp_path / "a.4.json").write_bytes((tmp_path / "b.json").read_bytes())
    (tmp_path / "b.2.json").write_bytes(b"{")
    found = judged(FleetFolder(tmp_path))
    assert "a.4.json is of other GPUs" in found["a"].reason
    assert found["b"].reason.startswith("b.2.json: it is not valid JSON")


def test_what_a_roster_names_is_a_machine_and_collecting_anew_forgets_older_looks(
    tmp_path: Path,
) -> None:
    for number in (1, 2, 3):
        folder = FleetFolder(tmp_path, number)
        members = [folder.keep("a", at(1.0), []), Member(name="a.3")]
        folder.write_roster("ansible", members)
    assert [path.name for path in folder.files("a")] == ["a.3.json"]
    folder = FleetFolder(tmp_path)
    assert [member.name for member in folder.members()] == ["a", "a.3"]
    assert [path.name for path in folder.files("a")] == ["a.json", "a.2.json"]
    folder.write_roster("ansible", members, ["a"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.3.json", "a.json", "fleet.json"]


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
