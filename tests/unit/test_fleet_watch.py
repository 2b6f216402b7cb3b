"""What turned since the last look: told once, worst first; only changed files are judged again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from fleet_results import HOSTILE, machine, problem

from envcheck.fleet.folder import FleetFolder, Member
from envcheck.fleet.model import JudgedMachine
from envcheck.fleet.reports import turned
from envcheck.fleet.watch import FleetLook, TurnEvent, counted, look, read, state_file, write

NOW = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)
ILL = {"state": "problems", "problems": [problem()]}


class World:
    """A directory in which each machine's file says what is judged of it."""

    def __init__(self, path: Path) -> None:
        self.folder = FleetFolder(path)
        self.machines: dict[str, JudgedMachine] = {}
        self.judged: list[str] = []
        self.watched: FleetLook | None = None
        self.writes = 0

    def put(self, name: str, state: str = "healthy", **changes: object) -> None:
        self.machines[name] = machine(name, state, **changes)
        self.writes += 1
        self.folder.file(name).write_text("x" * self.writes)

    def remove(self, name: str) -> None:
        del self.machines[name]
        self.folder.file(name).unlink()

    def look(
        self, *, hours: float = 0, stale: float | None = None, by: str = ""
    ) -> list[TurnEvent]:
        self.judged = []
        members = [
            Member(name=name, outcome="unreachable" if one.answer == "unreachable" else "answered")
            for name, one in self.machines.items()
        ]
        self.watched, events = look(
            self.folder,
            members,
            self.judge,
            NOW + timedelta(hours=hours),
            before=self.watched,
            stale=stale,
            by=by,
        )
        return events

    def judge(self, members: list[Member]) -> Iterator[JudgedMachine]:
        for member in members:
            self.judged.append(member.name)
            yield self.machines[member.name]

    def told(self, **options: float) -> list[tuple[str, str]]:
        return [(one.event, one.machine) for one in self.look(**options)]  # type: ignore[arg-type]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_first_look_tells_who_is_not_well(world: World) -> None:
    world.put("a")
    world.put("b", "problems")
    world.put("c", "unanswered")
    assert world.told() == [("ill", "b"), ("silent", "c")]
    assert world.watched is not None
    assert counted(world.watched) == "3 machines: 1 well, 1 ill, 1 silent"
    assert world.told() == []


def test_what_turned_is_told_once_worst_first(world: World) -> None:
    for name in ("a", "b", "d"):
        world.put(name)
    world.put("c", "problems")
    world.look()
    world.put("a", "problems")
    world.put("c")
    world.put("e")
    world.put("f", "problems")
    world.remove("d")
    assert world.told() == [("ill", "a"), ("ill", "f"), ("gone", "d"), ("new", "e"), ("well", "c")]
    assert world.told() == []


def test_problems_of_a_machine_that_stays_ill(world: World) -> None:
    world.put("a", "problems", problems=[problem("DRV-002"), problem("GPU-008")])
    world.look()
    world.put("a", "problems", problems=[problem("GPU-008"), problem("PCI-005", level="warn")])
    events = world.look()
    assert [(one.event, one.words.split()[0]) for one in events] == [
        ("problem", "PCI-005"),
        ("solved", "DRV-002"),
    ]
    assert events[0].codes == ["GPU-008", "PCI-005"]


def test_only_changed_files_are_judged_again(world: World) -> None:
    for name in "abc":
        world.put(name)
    world.look()
    world.put("b")
    world.look()
    assert world.judged == ["b"]
    world.look(by="another profile")
    assert world.judged == ["a", "b", "c"]


def test_a_half_written_file_is_left_for_the_next_look(world: World) -> None:
    world.put("a", "problems")
    world.look()
    broken = {"answer": "unreadable", "reason": "it is not whole JSON"}
    world.put("a", "unanswered", **broken)
    world.put("b", "unanswered", **broken)
    assert world.told() == []
    world.put("b")
    assert world.told() == [("silent", "a"), ("new", "b")]
    world.put("a")
    assert world.told() == [("back", "a")]


def test_a_half_written_file_of_one_that_is_ill_changes_nothing(world: World) -> None:
    world.put("a", "problems")
    world.look()
    world.put("a", "unanswered", answer="unreadable")
    world.look()
    world.put("a", "problems")
    assert world.told() == []


def test_silence_by_age(world: World) -> None:
    world.put("a")
    world.put("b", "problems")
    assert world.told(hours=0, stale=7200) == [("ill", "b")]
    assert world.told(hours=2, stale=7200) == [("silent", "a"), ("silent", "b")]
    assert world.told(hours=3, stale=7200) == []
    world.put("a", collected_at="2026-01-01T03:00:00Z")
    assert world.told(hours=3, stale=7200) == [("back", "a")]
    world.put("b", collected_at="no time")
    assert world.told(hours=3, stale=7200) == [("back", "b"), ("well", "b")]


def test_one_that_answers_again(world: World) -> None:
    world.put("a", "unanswered")
    world.put("b", "unanswered")
    world.look()
    world.put("a")
    world.put("b", "problems")
    assert world.told() == [("ill", "b"), ("back", "a")]


def test_a_look_is_kept_and_read_again(world: World, tmp_path: Path) -> None:
    world.put("a", "problems")
    world.look()
    assert world.watched is not None
    file = tmp_path / "state" / "look.json"
    assert read(file) is None
    write(file, world.watched)
    assert read(file) == world.watched
    file.write_text("{")
    assert read(file) is None
    assert state_file(tmp_path) == state_file(tmp_path / "x" / "..")
    assert state_file(tmp_path) != state_file(tmp_path / "x")


def test_words_for_people_and_programs(world: World) -> None:
    world.put("gpu1", "problems")
    (event,) = events = world.look()
    told = "2026-01-01T01:00:00Z ILL     gpu1: DRV-002 kernel module and libraries do not match\n"
    assert turned.render(events) == told
    assert json.loads(turned.as_json(events)) == {
        "schema": 1,
        "time": "2026-01-01T01:00:00Z",
        "event": "ill",
        "machine": "gpu1",
        "state": "problems",
        "codes": ["DRV-002"],
        "words": event.words,
    }


def test_the_gpu_is_named(world: World) -> None:
    hot = problem("GPU-008", headline="is throttled by heat")
    for name, devices in (("a", ["GPU 3 NVIDIA H100 at 0000:61:00.0"]), ("b", ["GPU 0", "GPU 1"])):
        world.put(name, "problems", problems=[type(hot)(**_fields(hot), devices=devices)])
    one, other = world.look()
    assert one.words == "GPU-008 GPU 3 is throttled by heat"
    assert other.words == "GPU-008 a GPU is throttled by heat (GPUs 0–1)"


def _fields(of: object) -> dict[str, object]:
    names = ("code", "level", "title", "headline", "message")
    return {name: getattr(of, name) for name in names}


def test_hostile_words_stay_on_their_line(world: World, tmp_path: Path) -> None:
    for number, text in enumerate(HOSTILE):
        world.put(f"m{number}", "problems", problems=[problem(headline=text, title=text)])
    events = [
        type(one)(
            schema=1,
            time=one.time,
            event=one.event,
            machine=text,
            state=one.state,
            codes=one.codes,
            words=one.words,
        )
        for one, text in zip(world.look(), HOSTILE, strict=True)
    ]
    for shown in (turned.render(events), turned.as_json(events)):
        assert len(shown.splitlines()) == len(HOSTILE)
        assert not {"\x1b", "\u202e", "\x00"} & set(shown)
    assert world.watched is not None
    write(tmp_path / "state" / "x.json", world.watched)
