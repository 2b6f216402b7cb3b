"""Starts the program on all machines at once, by Ansible or Slurm, and keeps what they answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ... import json_text
from ...exit_codes import CouldNotLook, UsageError
from ...install import durable
from ..engines import NAME, PEERS, Asked, OnOutcome
from ..engines.collecting import ENDED, Members
from ..folder import NETWORK, FleetFolder, Member
from . import planning
from .model import SCHEMA, Answer, NetworkRun, Pass

LIMIT = 64 << 20  # bytes of network.json
_GRACE = 10.0  # seconds for a machine to answer once most of the others have, beside rounds' time
_TOGETHER = 8  # rounds' time of those that go on together
_PORTS = (20000, 30000)  # below those that Linux gives to connections
_MARGIN = 360.0  # seconds of a machine's deadline for a framework's import

# Asks machines what ``members.asked`` says: by Ansible or Slurm; names: those alone, None for all.
Ask = Callable[[Members, "list[str] | None"], None]


class _Enough(Exception):
    """Most have answered, and the others would have by now."""


class Peers(Members):
    """Machines that test the network together: their answers are kept here, not in a file each.
    rounds: whose time may lie between their answers."""

    rounds = 2

    def __init__(self, folder: FleetFolder, asked: Asked, on_outcome: OnOutcome) -> None:
        super().__init__(folder, asked, on_outcome)
        self.answers: dict[str, Answer] = {}
        self._latest = time.monotonic()

    def keep(self, name: str, groups: list[tuple[str, str]], answer: bytes) -> None:
        self._latest = time.monotonic()
        try:
            self.answers[name] = json_text.read(answer, Answer)
        except json_text.NotReadable as error:
            self.put(name, groups, "unreadable", f"its answer: {error}")
        else:
            self.put(name, groups, "answered")

    def tick(self) -> None:
        between = _GRACE + self.rounds * planning.slot(self.answers)
        most = 0 < len(self._open()) <= len(self.answers)
        if most and time.monotonic() - self._latest > between:
            raise _Enough

    def give_up(self) -> None:
        reason = "no answer, and the others' have all come"
        for member in self._open():
            self.put(member.name, member.groups, "timed-out", reason)

    def _open(self) -> list[Member]:
        return [member for member in self.found.values() if member.reason == ENDED]


def run(
    ask: Ask,
    engine: str,
    folder: FleetFolder,
    words: list[str],
    wanted: dict[str, Any],
    deadline: float,
    on_outcome: OnOutcome,
    say: Callable[[str], None],
) -> NetworkRun:
    """Both passes; network.json has what came, also where the second is interrupted. words: arguments of
    the collector. wanted: fields of its request. deadline: seconds of each pass. Raises UsageError,
    CouldNotLook."""

    def one_pass(request: dict[str, Any], names: list[str] | None) -> Pass:
        request = {**request, **wanted, "name": NAME, "port": random.randint(*_PORTS)}
        encoded = msgspec.json.encode({"network": request, "probes": ["nvml", "cuda"]}).decode()
        asked = Asked([*words, f"--request={encoded}"], deadline + _MARGIN, for_each=True)
        members = Peers(folder, asked, on_outcome)
        members.rounds += _TOGETHER * bool(request["together"])
        try:
            ask(members, names)
        except _Enough:
            members.give_up()
        return Pass(members=list(members.found.values()), answers=members.answers)

    first = one_pass({"peers": PEERS, "pairs": None, "named": 0, "together": [], "slot": 0}, None)
    found = NetworkRun(schema=SCHEMA, engine=engine, passes=[first])
    _write(folder, found)
    _check(first)
    plan = planning.second(found)
    if not plan.pairs and not plan.together:
        return found
    say(
        f"the second pass: {sum(map(len, plan.pairs))} pairs again,"
        f" then {len(plan.together)} machines together"
    )
    names = [name for name, _address in plan.peers]
    together = [names[place] for place in plan.together]
    again = one_pass(msgspec.structs.asdict(plan), names)
    again = msgspec.structs.replace(again, together=together)
    found = NetworkRun(schema=SCHEMA, engine=engine, passes=[first, again])
    _write(folder, found)
    return found


def _check(first: Pass) -> None:
    if len(first.members) < 2:
        raise UsageError("the network between machines takes two of them, at least")
    reasons = [one.reason for one in first.answers.values() if not one.pairs]
    reasons += [one.reason for one in first.members if one.outcome != "answered"]
    if not any(one.pairs for one in first.answers.values()):
        raise CouldNotLook(f"no pair of machines came together: {reasons[0] if reasons else ''}")


def _write(folder: FleetFolder, found: NetworkRun) -> None:
    data = msgspec.json.format(msgspec.json.encode(found), indent=1)
    try:
        durable.write(folder.path / NETWORK, data)
    except OSError as error:
        raise CouldNotLook(f"{folder.path / NETWORK}: {error.strerror}") from None


def read(path: Path) -> NetworkRun:
    """What an earlier run has kept: a directory, or its file. Raises UsageError."""
    file = path / NETWORK if path.is_dir() else path
    try:
        if not file.is_file():
            raise UsageError(f"{file}: there is no such file")
        if file.stat().st_size > LIMIT:
            raise UsageError(f"{file}: larger than {LIMIT >> 20} MiB: this is no {NETWORK}")
        found = json_text.read(file.read_bytes(), NetworkRun)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except json_text.NotReadable as error:
        raise UsageError(f"{file}: {error}") from None
    return found
