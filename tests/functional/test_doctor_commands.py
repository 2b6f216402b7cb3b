"""What --commands prints, run by a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

from made_findings import made_finding

from envcheck.facts.snapshot import SCHEMA, Collector, Document, Snapshot
from envcheck.findings.model import CheckResult, Diagnosis, Remedy
from envcheck.reports import commands
from envcheck.reports.model import build


def nothing_known() -> Snapshot:
    who = Collector(version="0", python="3.11")
    machine = Document(
        origin="live", location="machine", collected_at="2026-01-01T00:00:00Z", collector=who
    )
    return Snapshot(schema=SCHEMA, redacted=True, machine=machine, target=None)


def test_a_shell_runs_what_was_read(tmp_path: Path) -> None:
    hostile = "x'; touch broken; $(touch broken) `touch broken` \\\n touch broken\r touch broken"
    found = made_finding(
        "fail", hostile, headline=hostile, remedy=Remedy(hostile, ["echo done > told"])
    )
    token = made_finding("fail", "B.", remedy=Remedy("B.", ["cat '<home-1>/x'"]))
    failed = CheckResult("A-1", "host", "A", "fail", findings=[found, token])
    facts = nothing_known()
    script = commands.render(build(facts, Diagnosis([failed])), facts)
    assert "\n# put in what is behind the token, then run: cat '<home-1>/x'\n" in script
    ran = subprocess.run(
        ["sh"], input=script.encode(), cwd=tmp_path, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert [path.name for path in tmp_path.iterdir()] == ["told"]
