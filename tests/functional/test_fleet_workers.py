"""The processes that judge a fleet: what kills one of them costs one machine, and none is left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import simulated_fleet
from cli import PYTHON, environment
from h100 import machine
from processes import PATIENCE, begun, everything, stretched
from whole import whole

from envcheck.exit_codes import CouldNotLook, UsageError
from envcheck.facts import snapshot as snapshots
from envcheck.fleet import workers
from envcheck.fleet.folder import FleetFolder
from envcheck.fleet.judging import ToJudge
from envcheck.fleet.result import result
from envcheck.fleet.workers import judged, side_by_side


@pytest.fixture
def folder(tmp_path: Path) -> FleetFolder:
    text, other = snapshots.dump(whole()), snapshots.dump(machine())
    for number in range(40):
        (tmp_path / f"gpu{number:02}.json").write_bytes(other if number % 3 else text)
    return FleetFolder(tmp_path)


@pytest.fixture(autouse=True)
def nothing_runs_on() -> Iterator[None]:
    yield
    assert children() == set()


def children() -> set[int]:
    return {one.pid for one in everything() if one.parent == os.getpid() and one.state != "Z"}


def work(folder: FleetFolder) -> list[ToJudge]:
    return [ToJudge(member=m, files=[str(folder.file(m.name))]) for m in folder.members()]


def test_a_killed_process_costs_nothing(folder: FleetFolder) -> None:
    found = side_by_side(work(folder), 2)
    machines = [next(found)]
    for pid in children():
        os.kill(pid, signal.SIGKILL)
    machines += found
    assert [one.name for one in machines] == [one.member.name for one in work(folder)]
    assert {one.state for one in machines} == {"healthy"}


# What a Snapshot that kills its reader does, put below the process that judges.
_IMPORT = "from envcheck.fleet import workers\n"
_DEADLY = """
import os, time
from pathlib import Path
from envcheck.fleet import judging
real = judging.judge_files
def judge_files(work, *more):
    if work.member.name == "gpu07":
        {what}
    return real(work, *more)
judging.judge_files = judge_files
"""


@pytest.mark.parametrize(
    ("what", "words"),
    [("os.abort()", "SIGABRT"), ("os._exit(3)", "status 3"), ("time.sleep(600)", "too long")],
)
def test_a_snapshot_that_kills_its_reader_costs_itself_alone(
    folder: FleetFolder, monkeypatch: pytest.MonkeyPatch, what: str, words: str
) -> None:
    deadly = _DEADLY.replace("{what}", what)
    monkeypatch.setattr(workers, "_START", workers._START.replace(_IMPORT, deadly + _IMPORT))
    found = {one.name: one for one in side_by_side(work(folder), 2, deadline=stretched(8))}
    assert len(found) == 40
    assert found["gpu07"].answer == "unreadable" and words in found["gpu07"].reason
    assert {one.state for one in found.values() if one.name != "gpu07"} == {"healthy"}


def test_one_that_needs_too_much_memory_costs_itself_alone(
    folder: FleetFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = f"{_IMPORT}workers._MEMORY = 200 << 20\n"
    monkeypatch.setattr(workers, "_START", workers._START.replace(_IMPORT, limited))
    text = snapshots.dump(whole()).decode()
    many = ",".join(f'"a{n}":{{}}' for n in range(3_000_000))
    probe = f'{{"x": {{"outcome": "ok", "facts": {{{many}}}}}}}'
    hostile = text.replace('"machine": {', f'"machine": {{"extensions": {probe},', 1)
    assert len(text) < len(hostile) < snapshots.LIMIT
    folder.file("gpu03").write_text(hostile)
    found = {one.name: one for one in side_by_side(work(folder), 1)}
    assert found["gpu03"].answer == "unreadable"
    assert sum(one.state == "healthy" for one in found.values()) == 39


def test_a_process_that_cannot_start_is_one_sentence(
    folder: FleetFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_START", "import nothing_of_that_name")
    with pytest.raises(CouldNotLook, match="the process that judges machines exited with status 1"):
        list(side_by_side(work(folder), 2))


def test_a_page_that_cannot_be_written_is_one_sentence(folder: FleetFolder) -> None:
    with pytest.raises(UsageError, match="a page cannot be written: /no/where: No such file"):
        list(side_by_side(work(folder), 1, pages=Path("/no/where")))


def test_whoever_stops_asking_ends_the_processes(folder: FleetFolder) -> None:
    found = judged(folder, folder.members())
    next(found)
    assert children()
    found.close()  # type: ignore[attr-defined]


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:

    text = snapshots.dump(whole())
    for number in range(600):
        (tmp_path / f"n{number}.json").write_bytes(text)
    argv = [PYTHON, "-m", "envcheck", "fleet", "doctor", str(tmp_path)]
    started = begun(argv, env=environment())
    waited = time.monotonic() + PATIENCE
    while time.monotonic() < waited:
        below = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        if below:
            break
        time.sleep(0.02)
    started.send_signal(signal.SIGINT)
    _out, errors = started.communicate(timeout=PATIENCE)
    assert started.returncode == 130 and errors.strip().endswith(b"envcheck: interrupted")
    while any(Path(f"/proc/{pid}").exists() for pid in below):  # the kernel ends them with it
        assert time.monotonic() < waited
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_in_a_thousand_machines_all_that_was_put_in_is_found_and_nothing_else(
    tmp_path: Path, seed: int
) -> None:
    machines, truth = simulated_fleet.simulated(seed, 1000)
    fleet = FleetFolder(tmp_path)
    simulated_fleet.keep(fleet, machines)
    simulated_fleet.assert_found(result(list(judged(fleet, fleet.members()))), truth)
