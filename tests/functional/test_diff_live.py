"""`envcheck diff` as a process: this machine beside itself, now and a moment ago."""

from __future__ import annotations

import json
from pathlib import Path

from cli import envcheck

# Other tests, at the same time, start programs of these names.
SERVICES = ("driver.fabric_manager", "driver.persistence_daemon")


def test_a_machine_is_as_it_was_a_moment_ago(tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    assert envcheck("collect", "--level", "quick", "--output", before).returncode == 0
    now = envcheck("diff", before, "--format", "json", "--fail-on", "never")
    assert now.returncode == 0, now.stderr
    report = json.loads(now.stdout)
    facts = [fact for fact in report["facts"] if fact["key"] not in SERVICES]
    assert not facts and not report["other_machine"]
    assert report["facts_compared"] > 10
    assert not [one for one in report["only"] if "rates" in one["words"]], "as deep as before"
