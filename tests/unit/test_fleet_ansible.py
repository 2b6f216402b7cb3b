"""Ansible as an engine, without one: its command line, its events, and what becomes of a machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envcheck.exit_codes import CouldNotLook, UsageError
from envcheck.fleet.engines import Asked, ansible, ansible_collect, outcomes
from envcheck.fleet.engines.ansible import Event, PlaybookEnd
from envcheck.fleet.engines.collecting import Members
from envcheck.fleet.folder import FleetFolder, Member


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("ssh: connect to host 10.0.0.7 port 22: Connection refused\r\n", "connection refused"),
        ("Task failed: x: No route to host\nConnection to gpu1 port 22", "no route to it"),
        ("op@10.0.0.7: Permission denied (publickey,password).", "permission denied (publickey,password)"),
        ("Host key verification failed.", "its host key is not known"),
        ("@@ REMOTE HOST IDENTIFICATION HAS CHANGED! @@\nHost key", "its host key is not the known one"),
        ("Invalid/incorrect password: Permission denied, please try again.", "the password is refused"),
        ("Connection timed out during banner exchange\nx", "connected, and no word from its sshd"),
        ("something quite new\n\n", "something quite new"),
        ("Failed to connect to the host via ssh: Bad configuration option: x", "Bad configuration option: x"),
        ("", "Ansible does not say why"),
        ('Data could not be sent to remote host "a". Make sure it answers: ?', "the connection broke"),
        ('Data could not be sent to remote host "a". Make sure it answers: Odd', None),
    ],
)  # fmt: skip
def test_why_a_machine_cannot_be_reached_is_told_alike_on_all(
    words: str, reason: str | None
) -> None:
    # where ssh's own words follow, they are passed on
    shown = words if reason is None else reason
    assert outcomes.of_words(words, "unreachable") == ("unreachable", shown)


def test_a_long_or_hostile_reason_is_a_line() -> None:
    outcome, reason = outcomes.of_words("x\x1b[31m\u202e" + "y" * 5000, "failed")
    assert outcome == "failed" and reason.isprintable() and len(reason) < 250


@pytest.mark.parametrize(
    ("code", "stderr", "error", "sentence"),
    [
        (2, b"[WARNING]: x\nERROR! the file a was not found\n", UsageError, "the file a was not found"),
        (2, b"usage: a\nansible-playbook: error: unrecognized: --x\nusage: ...", UsageError, "nized: --x"),
        (4, b"[ERROR]: Attempting to decrypt but no vault secrets found\n", UsageError, "no vault secrets"),
        (1, b"", CouldNotLook, "exited with status 1"),
    ],
)  # fmt: skip
def test_an_ansible_that_does_not_begin_is_told_in_its_words(
    code: int, stderr: bytes, error: type[Exception], sentence: str
) -> None:
    end = PlaybookEnd(code, f"exited with status {code}", ansible._last_words(stderr))
    refused = ansible._refused(Path("/bin/ansible-playbook"), end)
    assert type(refused) is error and sentence in str(refused) and "usage:" not in str(refused)


class Running:
    """A run that is told events."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = FleetFolder(tmp_path)
        self.shown: list[Member] = []
        self.members = Members(self.folder, Asked([], 60.0), self.shown.append)
        self.run = ansible_collect._Collecting(self.members, str, tmp_path)
        for name in ("a", "../b", "c\x1b[31m"):
            self.run.on_event(Event(event="host", host=name, groups=["g"], places={"rack": "r1"}))

    def result(self, host: str, **more: object) -> Member:
        self.run.on_event(Event(event="result", host=host, **more))  # type: ignore[arg-type]
        return self.shown[-1]


def test_events_become_members(tmp_path: Path) -> None:
    running = Running(tmp_path)
    assert [member.outcome for member in running.shown] == ["not-asked"] * 3
    assert running.shown[0].groups == [("group", "g"), ("rack", "r1")]
    assert (
        running.result("a", state="unreachable", words="No route to host").outcome == "unreachable"
    )
    assert running.result("../b", state="failed", timed_out=True).reason == "no answer within 60 s"
    old = running.result(
        "../b",
        state="failed",
        words="The envcheck_ask action failed to execute in the expected time frame (75)",
    )
    assert old.outcome == "timed-out"
    printed = {"endless": True}
    assert running.result("a", state="ok", answer=json.dumps(printed)).outcome == "unreadable"
    assert running.shown[-1].groups
    running.result("not asked", state="ok")
    assert set(running.members.found) == {"a", "../b", "c\x1b[31m"}


def test_an_answer_that_is_no_snapshot_is_told_and_removed(tmp_path: Path) -> None:
    running = Running(tmp_path)
    answer = tmp_path / "answer"
    answer.write_bytes(b"rubbish")
    member = running.result("a", state="ok", answer=json.dumps({"answer": str(answer), "rc": 0}))
    assert member.outcome == "unreadable" and not answer.exists()
    for bad in ("[" * 5000, '{"rc": ' + "9" * 5000 + "}", '{"endless": 1}'):
        assert running.result("../b", state="ok", answer=bad).outcome == "unreadable", bad[:20]


def test_the_roster_keeps_machines_of_earlier_runs(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("{}")
    running = Running(tmp_path)
    with running.members.roster("ansible"):
        running.result("a", state="unreachable", words="Connection refused")
    names = [member.name for member in running.folder.members()]
    assert names == sorted(["../b", "a", "c\x1b[31m", "old"])
