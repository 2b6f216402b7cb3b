"""What a network run names, as problems of a fleet's machines: groups, formats, changes, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fleet_results
import msgspec
import pytest
import simulated_fleet
from test_network_judging import Simulated

from envcheck.cli.main import run
from envcheck.exit_codes import ExitCode
from envcheck.fleet.folder import NETWORK, Member
from envcheck.fleet.judging import unanswered
from envcheck.fleet.model import FleetResult
from envcheck.fleet.network.in_fleet import with_network
from envcheck.fleet.network.result import result as network_result
from envcheck.fleet.result import result

NAMES = [f"n{one:04d}" for one in range(16)]
SNAPSHOT = msgspec.json.encode(simulated_fleet.base("Tesla T4", "T4", 1))


def fleet(faults: dict[str, Any], *, before: FleetResult | None = None) -> FleetResult:
    found = network_result(Simulated(16, 1, faults).run())
    machines = with_network([*map(fleet_results.machine, NAMES)], found)
    return result(machines, [before.machines] if before else (), found)


def folder(path: Path, faults: dict[str, Any], *, snapshots: bool = True) -> Path:
    path.mkdir()
    (path / NETWORK).write_bytes(msgspec.json.encode(Simulated(16, 1, faults).run()))
    for name in NAMES if snapshots else ():
        (path / f"{name}.json").write_bytes(SNAPSHOT)
    return path


def test_a_failure_breaks_a_machine_and_a_slow_network_degrades_it() -> None:
    found = fleet({"slow": 3, "cut": (5, 6), "off": 9})
    states = {one.name: one.state for one in found.machines if one.state != "healthy"}
    assert states == {"n0003": "degraded", "n0005": "broken", "n0006": "broken", "n0009": "broken"}
    groups = {(one.code, one.cause): (one.machines, one.headline) for one in found.groups}
    assert groups["FLT-001", "pair-cut-off"] == (
        ["n0005", "n0006"],
        "two machines cannot reach each other",
    )
    assert groups["FLT-001", "machine-slow"] == (["n0003"], "a machine has a slow network")


def test_what_is_solved_and_what_is_new_is_a_change() -> None:
    found = fleet({"slow": 3}, before=fleet({"cut": (5, 6)}))
    assert {(one.machine, one.kind) for one in found.since or ()} == {
        ("n0003", "degraded"),
        ("n0005", "healthy"),
        ("n0006", "healthy"),
    }


def test_a_machine_that_gave_no_snapshot_is_broken_where_the_network_says_so() -> None:
    found = network_result(Simulated(16, 1, {"off": 9}).run())
    gone = [unanswered(Member(name=one, outcome="unreachable", reason="No route")) for one in NAMES]
    machines = with_network(gone, found)
    counts = result(machines, network=found).counts
    assert (counts.broken, counts.silent, counts.unanswered) == (1, 15, 15)


@pytest.mark.parametrize("form", ["text", "json", "openmetrics", "html"])
def test_each_format_has_what_the_network_names(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder(tmp_path / "fleet", {"slow": 3, "cut": (5, 6)})
    code = run(["fleet", "report", str(place), "--format", form])
    shown = capsys.readouterr().out
    shown = (place / "index.html").read_text() if form == "html" else shown
    assert code == ExitCode.PROBLEMS
    assert "FLT-001" in shown and "n0003" in shown
    if form == "json":
        assert {one["cause"] for one in json.loads(shown)["network"]["findings"]} == {
            "machine-slow",
            "pair-cut-off",
        }
    if form == "openmetrics":
        assert 'envcheck_network_failed_pairs{machine="n0005"} 1.0' in shown
        assert 'envcheck_state{machine="n0003",state="degraded"} 1.0' in shown
    if form == "html":
        assert 'id="network"' in shown and "11 others" not in shown.partition('id="network"')[0]


@pytest.mark.parametrize(
    ("faults", "fail_on", "code"),
    [({"slow": 3}, "fail", 0), ({"slow": 3}, "degraded", 1), ({"cut": (5, 6)}, "fail", 1)],
)
def test_exit_codes_go_by_what_is_named(
    faults: dict[str, Any], fail_on: str, code: int, tmp_path: Path
) -> None:
    place = folder(tmp_path / "fleet", faults)
    assert run(["fleet", "report", str(place), "--fail-on", fail_on, "-q"]) == code


@pytest.mark.parametrize("data", [b"", b"\xff{", b'{"schema": 1, "engine": "x", "passes": []}'])
def test_a_damaged_file_is_one_sentence_and_the_snapshots_are_judged(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder(tmp_path / "fleet", {})
    (place / NETWORK).write_bytes(data)
    assert run(["fleet", "report", str(place)]) == ExitCode.COULD_NOT_LOOK
    shown = capsys.readouterr()
    assert "network.json cannot be read: it" in shown.out
    assert "16 machines" in shown.out and "Traceback" not in shown.err
    for snapshot in set(place.iterdir()) - {place / NETWORK}:
        snapshot.unlink()
    assert run(["fleet", "report", str(place)]) == ExitCode.COULD_NOT_LOOK
    assert "no machine has a Snapshot\n" in capsys.readouterr().out


def test_a_directory_with_a_network_alone_has_its_machines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder(tmp_path / "fleet", {"off": 9}, snapshots=False)
    assert run(["fleet", "report", str(place)]) == ExitCode.PROBLEMS
    shown = capsys.readouterr().out
    assert "0 of 16 machines are healthy, 1 broken, 15 could not be checked" in shown
    assert "there is no Snapshot of it, only network.json has it" in " ".join(shown.split())
