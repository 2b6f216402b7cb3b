"""`envcheck diff`: a machine beside itself, demos beside each other, and what explains a change."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import demos
import msgspec
import pytest
from h100 import COUNT, gpu, machine, with_fault
from test_comparison import kernels

from envcheck.attributes.difference import differences
from envcheck.checks.engine import diagnose
from envcheck.cli.main import run
from envcheck.facts.snapshot import Snapshot, dump, load
from envcheck.facts.view import SnapshotView
from envcheck.reports import diff
from envcheck.reports.diff_model import DiffReport, compare
from envcheck.reports.json_schema import schema


def of(before: Snapshot, after: Snapshot) -> DiffReport:
    return compare(before, after, diagnose(before), diagnose(after))


def text(report: DiffReport, **more: Any) -> str:
    return diff.render(report, names=("before.json", "after.json"), **more)


@pytest.mark.parametrize("name", demos.DEMOS)
def test_a_machine_has_no_difference_from_itself(name: str) -> None:
    snapshot = load(demos.build(name))
    report = of(snapshot, load(demos.build(name)))
    assert (report.verdict, report.worse, report.changed) == ("same", False, False)
    assert report.facts_compared > 100 and not report.only and not report.judged_in_one
    assert text(report).startswith("Nothing that matters changed.")


def test_every_demo_beside_every_other() -> None:
    made = {name: load(demos.build(name)) for name in demos.DEMOS}
    judged = {name: diagnose(snapshot) for name, snapshot in made.items()}
    for one, other in itertools.permutations(made, 2):
        report = compare(made[one], made[other], judged[one], judged[other])
        back = compare(made[other], made[one], judged[other], judged[one])
        opposite = {"worse": "better", "better": "worse", "same": "same"}
        assert back.verdict == opposite[report.verdict] and not report.other_machine
        assert {fact.key for fact in report.facts} == {fact.key for fact in back.facts}
        decides = [turned for turned in report.turned if turned.decides]
        assert bool(decides) == (report.verdict != "same"), (one, other)
        assert report.turned[: len(decides)] == decides, "what explains the verdict comes first"
        assert text(report) and text(report, verbose=True, utf8=False, width=40)


def test_the_check_that_turned_comes_first() -> None:
    report = of(load(demos.build("healthy")), load(demos.build("heat")))
    first = report.turned[0]
    assert (first.code, first.before, first.after, first.decides) == (
        "GPU-008",
        "pass",
        "fail",
        True,
    )
    shown = text(report)
    assert "What explains it" in shown
    assert "FAIL GPU-008" in shown and "(was ok)" in shown


def rated(value: float, spread: float | None = 1.01, **changes: Any) -> Snapshot:
    made = kernels(**changes)
    probe = made.machine.micro_kernels
    assert probe is not None and probe.facts is not None
    (ran,) = probe.facts.runs
    (mode,) = ran.modes
    extra = {} if spread is None else {"spread": spread}
    assert mode.rate is not None
    rate = type(mode.rate)(timer="clock64", tflops=value, **extra)
    ran = msgspec.structs.replace(ran, modes=[msgspec.structs.replace(mode, rate=rate)])
    facts = msgspec.structs.replace(probe.facts, runs=[ran])
    document = msgspec.structs.replace(
        made.machine, micro_kernels=msgspec.structs.replace(probe, facts=facts)
    )
    return msgspec.structs.replace(made, machine=document)


def rates(before: Snapshot, after: Snapshot) -> list[tuple[float, bool]]:
    found = differences(SnapshotView(before), SnapshotView(after)).rates
    return [(round(one.change, 3), one.worse) for one in found]


def test_a_rate_counts_beyond_its_spread() -> None:
    assert rates(rated(600), rated(585)) == [], "2.5 %: no figure is that steady"
    assert rates(rated(600), rated(570)) == [(-0.05, True)]
    assert rates(rated(600), rated(630)) == [(0.05, False)]
    assert rates(rated(600, 1.04), rated(570, 1.04)) == [], "its repetitions lay as far apart"
    assert rates(rated(600, None), rated(576)) == [], "4 %, and nobody knows how steady it was"
    assert rates(rated(600, None), rated(560)) == [(-0.067, True)]


def write(path: Path, snapshot: Snapshot) -> str:
    path.write_bytes(dump(snapshot))
    return str(path)


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    well = write(tmp_path / "well.json", machine())
    ill = write(tmp_path / "ill.json", with_fault(ecc_uncorrected_volatile=3))
    other = machine([gpu(n, clock_sm_max_mhz=1755) for n in range(COUNT)])
    updated = write(tmp_path / "updated.json", other)
    assert run(["diff", well, well]) == 0
    assert run(["diff", well, ill]) == 1
    assert run(["diff", ill, well]) == 0
    assert run(["diff", well, updated]) == 0, "a change is none for the worse"
    assert run(["diff", well, updated, "--fail-on", "change"]) == 1
    assert run(["diff", well, ill, "--fail-on", "never"]) == 0
    capsys.readouterr()
    assert run(["diff", well, str(tmp_path / "none.json")]) == 2
    assert run(["diff", "-", "-"]) == 2
    assert run(["diff", well, ill, "--level", "deep"]) == 2
    assert run(["diff", well, ill, "--output", well]) == 2
    errors = capsys.readouterr().err
    assert "No such file" in errors and "one of the two only" in errors and "with B" in errors


def test_json_obeys_its_schema_and_stdin_is_one_of_the_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    well = write(tmp_path / "well.json", machine())

    class Stdin:
        buffer = io.BytesIO(dump(with_fault(pcie_width=8)))

    monkeypatch.setattr("sys.stdin", Stdin())
    assert run(["diff", well, "-", "--format", "json"]) == 1
    found = msgspec.json.decode(capsys.readouterr().out, type=DiffReport)
    assert found.worse and found.facts[0].key == "gpus.pcie_lanes"
    assert schema("diff")["title"] == "The report of envcheck diff"
    assert run(["schema", "diff"]) == 0
