"""What turned in a fleet's directory since the last look at it.

Each look gives the machines as they were seen, which the next look starts from, and an event for each machine
that turned. Only files that changed are judged again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from .. import __version__, json_text
from ..findings.model import Level
from ..install import durable
from ..install.places import state
from .folder import FleetFolder, Member
from .model import JudgedMachine, State
from .reports import words

SCHEMA = 1

# Worst first: the order in which they are told.
Kind = Literal["ill", "problem", "silent", "gone", "new", "solved", "back", "well"]
KINDS: tuple[Kind, ...] = ("ill", "problem", "silent", "gone", "new", "solved", "back", "well")

Stamp = tuple[int, int, int]  # of a file: when it was written, its size, its inode
Judge = Callable[[list[Member]], Iterator[JudgedMachine]]


class WatchedProblem(msgspec.Struct, frozen=True):
    code: str
    level: Level
    words: str


class WatchedMachine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine at one look. silent: why nothing recent is known of it, "" for one that tells.

    stamp: of the file that was judged, None for none. half: of one that could not be read, perhaps because
    it was being written; it is unreadable where it is still so at the next look.
    """

    state: State
    problems: list[WatchedProblem] = []
    silent: str = ""
    collected_at: str = ""
    stamp: Stamp | None = None
    half: Stamp | None = None


class FleetLook(msgspec.Struct, frozen=True, kw_only=True):
    """All machines at one look. by: what judged them; by another one, all are judged again."""

    schema: int
    directory: str
    by: str
    machines: dict[str, WatchedMachine]


class TurnEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What turned. time: of the look. words: for people."""

    schema: int
    time: str
    event: Kind
    machine: str
    state: State | None
    codes: list[str]
    words: str


def look(
    folder: FleetFolder,
    members: Sequence[Member],
    judge: Judge,
    now: datetime,
    *,
    before: FleetLook | None = None,
    stale: float | None = None,
    by: str = "",
) -> tuple[FleetLook, list[TurnEvent]]:
    """Look at these machines. stale: seconds after which a machine whose Snapshot is older is silent."""
    by = f"{__version__} {by}".strip()
    same = before is not None and before.by == by
    known = before.machines if before is not None else {}
    stamps = {one.name: _stamp(folder.file(one.name)) for one in members if _answered(one)}
    changed = [
        one
        for one in members
        if not (same and one.name in known and known[one.name].stamp == stamps.get(one.name))
        or not _answered(one)
    ]
    judged = {machine.name: machine for machine in judge(changed)}
    machines: dict[str, WatchedMachine] = {}
    for member in members:
        name, earlier = member.name, known.get(member.name)
        if name not in judged:
            assert earlier is not None
            machines[name] = earlier
        elif (seen := _seen(judged[name], stamps.get(name), earlier)) is not None:
            machines[name] = seen
        if name in machines:
            machines[name] = _aged(machines[name], now, stale)
    events = list(_events(known, machines, now, first=before is None))
    watched = FleetLook(
        schema=SCHEMA, directory=str(folder.path.absolute()), by=by, machines=machines
    )
    return watched, sorted(events, key=lambda one: KINDS.index(one.event))


def _answered(member: Member) -> bool:
    return member.outcome == "answered"


def _stamp(file: Path) -> Stamp | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _seen(
    machine: JudgedMachine, stamp: Stamp | None, earlier: WatchedMachine | None
) -> WatchedMachine | None:
    """None where a file of an unknown machine is half written, perhaps."""
    if machine.state == "unanswered":
        half = machine.answer == "unreadable" and stamp is not None
        if half and (earlier is None or earlier.half != stamp):
            kept = earlier or WatchedMachine(state="unanswered")
            return replace(kept, half=stamp, stamp=None)
        silent = words.silence(machine.answer, machine.reason)
        return WatchedMachine(
            state="unanswered", silent=silent, stamp=stamp if half else None, half=stamp
        )
    problems = {
        (one.code, one.level): WatchedProblem(one.code, one.level, words.problem_of(one))
        for one in machine.problems
    }
    return WatchedMachine(
        state=machine.state,
        problems=list(problems.values()),
        collected_at=machine.collected_at,
        stamp=stamp,
    )


def _aged(seen: WatchedMachine, now: datetime, stale: float | None) -> WatchedMachine:
    """With its silence, where its Snapshot is too old."""
    if seen.state == "unanswered":
        return seen
    when = _time(seen.collected_at)
    old = stale is not None and when is not None and (now - when).total_seconds() > stale
    return replace(seen, silent=f"its facts are of {seen.collected_at}" if old else "")


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _events(
    known: dict[str, WatchedMachine],
    machines: dict[str, WatchedMachine],
    now: datetime,
    *,
    first: bool,
) -> Iterator[TurnEvent]:
    time = now.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def event(kind: Kind, name: str, told: str, seen: WatchedMachine | None) -> TurnEvent:
        return TurnEvent(
            schema=SCHEMA,
            time=time,
            event=kind,
            machine=name,
            state=None if seen is None else seen.state,
            codes=[] if seen is None else [problem.code for problem in seen.problems],
            words=told,
        )

    for name, seen in machines.items():
        for kind, told in _turned(known.get(name), seen, first):
            yield event(kind, name, told, seen)
    for name in known:
        if name not in machines:
            yield event("gone", name, "its Snapshot is not there any more", None)


def _turned(
    before: WatchedMachine | None, seen: WatchedMachine, first: bool
) -> Iterator[tuple[Kind, str]]:
    if _unread(seen):
        return
    new = before is None or _unread(before)
    if seen.silent and (new or not (before and before.silent)):
        yield "silent", seen.silent
    if seen.state == "unanswered":
        return
    told = "; ".join(f"{one.code} {one.words}" for one in _worst_first(seen.problems))
    ill = seen.state in ("problems", "could-not-look")
    if new or before is None:
        if ill:
            yield "ill", told or "it could not be looked at"
        elif not first:
            yield "new", f"it is well{'; with warnings: ' + told if told else ''}"
        return
    was_ill = before.state in ("problems", "could-not-look")
    if before.silent and not seen.silent and before.state == "unanswered":
        yield (
            ("ill", told or "it could not be looked at")
            if ill
            else ("back", "it answers, and is well")
        )
        return
    if before.silent and not seen.silent:
        yield "back", f"its facts are of {seen.collected_at}"
    if ill and not was_ill:
        yield "ill", told or "it could not be looked at"
    elif was_ill and not ill:
        had = f"it had {', '.join(_codes(before))}" if before.problems else "it is well"
        yield "well", f"{had}{'; with warnings: ' + told if told else ''}"
    else:
        if more := [one for one in seen.problems if one.code not in _codes(before)]:
            yield "problem", "; ".join(f"{one.code} {one.words}" for one in _worst_first(more))
        if less := [one for one in before.problems if one.code not in _codes(seen)]:
            yield "solved", "; ".join(f"{one.code} {one.words}" for one in _worst_first(less))


def _unread(seen: WatchedMachine) -> bool:
    """Whether nothing is known of it but a file that may be half written."""
    return seen.state == "unanswered" and not seen.silent


def _codes(seen: WatchedMachine) -> list[str]:
    return list(dict.fromkeys(one.code for one in seen.problems))


def _worst_first(problems: list[WatchedProblem]) -> list[WatchedProblem]:
    return sorted(problems, key=lambda one: one.level != "fail")


def counted(watched: FleetLook) -> str:
    """ "40 machines: 26 well, 11 ill, 3 silent"."""
    machines = watched.machines.values()
    silent = sum(bool(one.silent) or one.state == "unanswered" for one in machines)
    heard = [one.state for one in machines if not one.silent and one.state != "unanswered"]
    well = heard.count("healthy")
    ill = len(heard) - well
    told = [f"{well} well", *([f"{ill} ill"] * bool(ill)), *([f"{silent} silent"] * bool(silent))]
    return f"{words.machines(len(watched.machines))}: {', '.join(told)}"


def state_file(directory: Path) -> Path:
    """Where the last look at a directory is kept: by user, so that whoever may read it may watch it."""
    digest = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:32]
    return state() / "fleet-watch" / f"{digest}.json"


def read(file: Path) -> FleetLook | None:
    """The last look; None where there is none that can be read."""
    try:
        watched = durable.load(file, FleetLook)
    except (OSError, msgspec.DecodeError):
        return None
    return watched if watched.schema == SCHEMA else None


def write(file: Path, watched: FleetLook) -> None:
    """Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    durable.write(file, json_text.line(watched).encode())
