"""Asks the machines of an Ansible inventory for their Snapshots, and keeps each as it comes."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from ... import json_text, plugins, scratch, single_file
from ...exit_codes import CouldNotLook, UsageError
from ...facts import snapshot as snapshots
from ..folder import FleetFolder, Member, Outcome
from . import Asked, Told, interrupts, outcomes, relay
from .ansible import COLLECT, Event, Inventory, PlaybookEnd, find, run_playbook

_CONNECTING = 10.0  # seconds that a connection may take
_ENDED = "the run was ended before its answer"


def collect(
    folder: FleetFolder,
    inventory: Inventory,
    asked: Asked,
    told: Told,
    say: Callable[[str], None],
) -> list[Member]:
    """Ask them all; the members of this run, in the inventory's order.

    told: called with each as soon as it is known what became of it, and with ``not-asked`` when it is known
    that it is to be asked. say: called with a sentence for people. However this ends, fleet.json tells what
    came until then.
    """
    with scratch.directory() as work:
        run = _Collecting(folder, asked, told, say, work)
        try:
            end = run_playbook(COLLECT, inventory, run.variables(), run.heard)
        finally:
            run.write_roster()
    run.check(end)
    return list(run.members.values())


class _AskTold(msgspec.Struct):
    """What our action says of one machine: the file of its answer, or what came in place of one.

    full: why no answer can be kept on this machine here.
    """

    answer: str = ""
    garbage: bool = False
    words: str = ""
    rc: int | None = None
    size: int = 0
    full: str = ""


class _Collecting:
    """What is known while Ansible asks."""

    def __init__(
        self,
        folder: FleetFolder,
        asked: Asked,
        told: Told,
        say: Callable[[str], None],
        work: Path,
    ) -> None:
        self.members: dict[str, Member] = {}
        self._folder = folder
        self._asked = asked
        self._told = told
        self._say = say
        self._work = work
        self._version = ""
        self._cookie = f"envcheck-{secrets.token_hex(8)}"

    def variables(self) -> dict[str, str]:
        """What the playbook needs to know."""
        asked, limit = self._asked, snapshots.LIMIT
        script = self._work / "collector.py"
        whole = single_file.build_script(plugins.probe_files())
        script.write_bytes(relay.before(whole, self._cookie, asked.deadline, limit))
        answers = self._work / "answers"
        answers.mkdir()
        deadline = asked.deadline + max(_CONNECTING + relay.MARGIN, asked.deadline / 4)
        return {
            "envcheck_script": str(script),
            "envcheck_command": relay.shell(
                "@PYTHON@", asked.arguments, self._cookie, asked.deadline
            ),
            "envcheck_mark": f"@{self._cookie} ",
            "envcheck_answers": str(answers),
            "envcheck_timeout": f"{deadline:.0f}",
        }

    def heard(self, event: Event) -> None:
        if event.event == "no-hosts":
            raise UsageError("the inventory names no machine, or --limit leaves none of them")
        if event.event == "started":
            self._version = event.version
        elif event.event == "play":
            machines = "1 machine" if event.hosts == 1 else f"{event.hosts} machines"
            self._say(f"asking {machines} by ansible-core {self._version} ({find()})")
        elif event.event == "host":
            groups = [("group", name) for name in event.groups]
            groups += list(event.places.items())
            self._set(Member(name=event.host, outcome="not-asked", reason=_ENDED, groups=groups))
        elif event.event == "result" and event.host in self.members:
            with interrupts.deferred():
                self._set(self._judged(self.members[event.host], event))

    def _set(self, member: Member) -> None:
        self.members[member.name] = member
        self._told(member)

    def _judged(self, member: Member, event: Event) -> Member:
        """What became of it."""
        outcome: Outcome
        try:
            told = json_text.convert(event.said, _AskTold)
            if told.full:
                raise CouldNotLook(f"{self._work}: {told.full}: no room for answers there")
            if told.answer:
                return self._answered(member, Path(told.answer))
        except json_text.NotReadable as error:
            outcome, reason = "unreadable", str(error)
            return Member(name=member.name, outcome=outcome, reason=reason, groups=member.groups)
        if told.garbage:
            outcome, reason = outcomes.of_garbage(told.words, told.rc, told.size)
        elif (
            event.timed_out or "in the expected time frame" in event.words
        ):  # 2.14 has no flag for it
            outcome, reason = "timed-out", f"no answer within {self._asked.deadline:g} s"
        else:
            otherwise: Outcome = "unreachable" if event.state == "unreachable" else "failed"
            outcome, reason = outcomes.of_words(event.words, otherwise)
        return Member(name=member.name, outcome=outcome, reason=reason, groups=member.groups)

    def _answered(self, member: Member, path: Path) -> Member:
        try:
            answer = path.read_bytes()
            path.unlink()
        except OSError as error:
            raise json_text.NotReadable(f"its answer: {error.strerror}") from None
        relayed = relay.read(answer, self._cookie, snapshots.LIMIT)
        found = outcomes.of_relayed(relayed, self._asked.deadline)
        if found is not None:
            outcome, reason = found
            return Member(name=member.name, outcome=outcome, reason=reason, groups=member.groups)
        try:
            return self._folder.keep(member.name, relayed.output, member.groups)
        except OSError as error:
            raise CouldNotLook(f"{self._folder.path}: {error.strerror}: {self._kept()}") from None

    def _kept(self) -> str:
        answered = sum(member.outcome == "answered" for member in self.members.values())
        return f"{answered} of {len(self.members)} machines' answers are kept there"

    def write_roster(self) -> None:
        """fleet.json: these machines, and those of earlier runs that were not meant this time."""
        if not self.members:
            return
        earlier = [one for one in self._folder.members() if one.name not in self.members]
        try:
            self._folder.write_roster("ansible", [*earlier, *self.members.values()])
        except OSError as error:
            raise CouldNotLook(f"{self._folder.path}: {error.strerror}: {self._kept()}") from None

    def check(self, end: PlaybookEnd) -> None:
        """Raises CouldNotLook where Ansible ended before it had asked all."""
        left = sum(member.reason == _ENDED for member in self.members.values())
        if left or not self.members:
            words = f": {end.words}" if end.words else ""
            raise CouldNotLook(f"ansible-playbook {end.description}{words}; {self._kept()}")
