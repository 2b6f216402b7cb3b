"""Asks the machines of an Ansible inventory for their Snapshots, and keeps each as it comes."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from ... import json_text, plugins, scratch, single_file
from ...exit_codes import CouldNotLook, UsageError
from ..folder import Outcome
from . import outcomes, relay
from .ansible import COLLECT, NETWORK, Event, Inventory, PlaybookEnd, find, run_playbook
from .collecting import ENDED, Members

ASK = "envcheck_ask"  # our action
_CONNECTING = 10.0  # seconds that a connection may take


def ask(members: Members, inventory: Inventory, say: Callable[[str], None]) -> None:
    """Ask them all what ``members.asked`` says; they are kept in the inventory's order. say: called with a
    sentence for people. Raises UsageError, CouldNotLook."""
    playbook = NETWORK if members.asked.for_each else COLLECT
    with scratch.directory() as work:
        run = _Collecting(members, say, work)
        end = run_playbook(playbook, inventory, run.variables(), run.on_event, tick=members.tick)
    run.check(end)


class _AskAnswer(msgspec.Struct):
    """What our action says of one machine: the file of its answer, and what came on standard error. endless:
    there is no file of what it sent. full: why no answer can be kept on this machine here."""

    answer: str = ""
    words: str = ""
    rc: int | None = None
    endless: bool = False
    full: str = ""


class _Collecting:
    def __init__(self, members: Members, say: Callable[[str], None], work: Path) -> None:
        self._members, self._say, self._work = members, say, work
        self._version = ""
        self._cookie = f"envcheck-{secrets.token_hex(8)}"

    def variables(self) -> dict[str, str]:
        """What the playbook needs to know."""
        asked = self._members.asked
        script = self._work / "collector.py"
        script.write_bytes(single_file.build_script(plugins.probe_files()))
        answers = self._work / "answers"
        answers.mkdir()
        deadline = asked.deadline + max(_CONNECTING + relay.MARGIN, asked.deadline / 4)
        return {
            "envcheck_script": str(script),
            "envcheck_command": relay.shell("@PYTHON@", asked, self._cookie),
            "envcheck_answers": str(answers),
            "envcheck_timeout": f"{deadline:.0f}",
        }

    def on_event(self, event: Event) -> None:
        if event.event == "no-hosts":
            raise UsageError("the inventory names no machine, or --limit leaves none of them")
        if event.event == "started":
            self._version = event.version
        elif event.event == "play":
            machines = "1 machine" if event.hosts == 1 else f"{event.hosts} machines"
            self._say(f"asking {machines} by ansible-core {self._version} ({find()})")
        elif event.event == "host":
            groups = [("group", name) for name in event.groups] + list(event.places.items())
            self._members.put(event.host, groups, "not-asked", ENDED)
        elif event.event == "result" and event.host in self._members.found:
            if event.action not in ("", ASK):
                return  # the list of the machines, which no machine is asked for
            groups = self._members.found[event.host].groups
            self._members.take(event.host, groups, self._outcome(event))

    def _outcome(self, event: Event) -> bytes | tuple[Outcome, str]:
        """The Snapshot, or why there is none."""
        deadline = self._members.asked.deadline
        try:
            reply = json_text.read(event.answer.encode() or b"{}", _AskAnswer)
        except json_text.NotReadable as error:
            return "unreadable", str(error)
        if reply.full:
            raise CouldNotLook(f"{self._work}: {reply.full}: no room for answers there")
        if reply.answer:
            path = Path(reply.answer)
            try:
                answer = path.read_bytes()
                path.unlink()
            except OSError as error:
                return "unreadable", f"its answer: {error.strerror}"
            return relay.read(answer, self._cookie, deadline, reply.words, reply.rc)
        if reply.endless:
            return relay.FLOODED
        # ansible-core 2.14 has no flag for it
        if event.timed_out or "in the expected time frame" in event.words:
            return relay.late(deadline)
        otherwise: Outcome = "unreachable" if event.state == "unreachable" else "failed"
        return outcomes.of_words(event.words, otherwise)

    def check(self, end: PlaybookEnd) -> None:
        """Raises CouldNotLook where Ansible ended before it had asked all."""
        members = self._members.found
        if not members or any(member.reason == ENDED for member in members.values()):
            words = f": {end.words}" if end.words else ""
            raise CouldNotLook(f"ansible-playbook {end.description}{words}; {self._members.kept()}")
