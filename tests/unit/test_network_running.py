"""What the controller does with machines that answer, and with those that never will."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.cli import main as cli
from envcheck.exit_codes import CouldNotLook, ExitCode, UsageError
from envcheck.fleet.engines import Asked
from envcheck.fleet.engines.collecting import ENDED, Members
from envcheck.fleet.folder import NETWORK, FleetFolder
from envcheck.fleet.network import result, running

ANSWER = b'{"outcome": "ok", "facts": {"slot": 2.0}, "pairs": [{"other": "%s"}]}'


def test_a_machine_that_hangs_is_not_waited_for_once_the_others_have_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: clock[0])
    asked: list[dict[str, bool]] = []
    slots: list[bool] = []

    def ask(members: Members, names: list[str] | None) -> None:
        slots.append('"slot":2.0' in members.asked.arguments[-1])
        asked.append(dict.fromkeys(names or [], True))
        if names is None:
            members.put("drained", [], "not-asked", "Slurm has it as drained")
        for name in names or ("a", "b", "hung"):
            members.put(name, [], "not-asked", ENDED)
        members.tick()
        for name, other in (("a", b"b"), ("b", b"a")):
            members.keep(name, [], ANSWER % other)
        members.tick()
        clock[0] += 60
        members.tick()
        assert names is not None, "it should have ended"

    found = running.run(
        ask, "slurm", FleetFolder(tmp_path), [], {}, 60, lambda _: None, lambda _: None
    )
    outcomes = {member.name: member.outcome for member in found.passes[0].members}
    assert outcomes == {
        "drained": "not-asked",
        "a": "answered",
        "b": "answered",
        "hung": "timed-out",
    }
    assert asked[1:] == [{"a": True, "b": True}]
    assert slots == [False, True], "the second pass needs no rehearsal"
    assert running.read(tmp_path) == found
    assert {why for _, why in result.result(found).silent} >= {"Slurm has it as drained"}
    assert cli.run(["fleet", "network", "--from", str(tmp_path)]) == ExitCode.COULD_NOT_LOOK
    assert "Slurm has it as drained" in capsys.readouterr().out


def test_machines_that_go_on_together_are_given_the_time_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running.time, "monotonic", lambda: 100.0)
    peers = running.Peers(FleetFolder(tmp_path), Asked([], 60.0), lambda _: None)
    peers.put("b", [], "not-asked", ENDED)
    peers.keep("a", [], ANSWER % b"b")
    monkeypatch.setattr(running.time, "monotonic", lambda: 125.0)
    with pytest.raises(running._Enough):
        peers.tick()
    peers.rounds = 10
    peers.tick()


def test_a_fleet_in_which_no_pair_came_together_is_no_result(tmp_path: Path) -> None:
    def ask(members: Members, names: list[str] | None) -> None:
        for name in ("a", "b"):
            members.keep(name, [], b'{"outcome": "not-run", "reason": "import torch: absent"}')

    with pytest.raises(CouldNotLook, match="import torch: absent"):
        running.run(ask, "slurm", FleetFolder(tmp_path), [], {}, 60, lambda _: 0, lambda _: None)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b"\xff", b'{"schema": 1, "engine": "x", "passes": []}']
)
def test_a_file_that_is_no_run_is_refused_in_one_sentence(tmp_path: Path, data: bytes) -> None:
    (tmp_path / NETWORK).write_bytes(data)
    with pytest.raises(UsageError, match=r"network\.json: "):
        running.read(tmp_path)


def test_the_question_names_the_machine_and_all_addresses() -> None:
    asked = Asked(['--request={"name": "@NAME@", "peers": "@PEERS@"}'], 1.0, for_each=True)
    (words,) = asked.filled("a", [("a", "10.0.0.1")]).arguments
    assert words == '--request={"name": "a", "peers": [["a", "10.0.0.1"]]}'
