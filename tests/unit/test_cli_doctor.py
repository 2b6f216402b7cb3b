"""`envcheck doctor`'s faces, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_report_verdict import hot

from envcheck.cli.main import run
from envcheck.facts.snapshot import dump

VERDICT = "1 problem: GPU 3 is throttled by heat"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("saved") / "machine.json"
    path.write_bytes(dump(hot(3)))
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], machine: str, *options: str) -> str:
    assert run(["doctor", "--from", machine, *options]) == 1, "no face changes the exit code"
    return capsys.readouterr().out


def test_less_and_more(capsys: pytest.CaptureFixture[str], machine: str) -> None:
    assert printed(capsys, machine, "-q") == f"✗ {VERDICT}\n"
    text, full = printed(capsys, machine), printed(capsys, machine, "-v")
    assert "Skipped: " in full and "Skipped: " not in text
    assert "machine.nvml.gpus[3].clock_sm_mhz = 345 (" in full and "clock_sm_mhz = 345;" in text


def test_a_file_gets_signs_and_no_colour(
    capsys: pytest.CaptureFixture[str], machine: str, tmp_path: Path
) -> None:
    for options in ((), ("-q",)):
        printed(capsys, machine, *options, "--output", str(tmp_path / "report"))
        text = (tmp_path / "report").read_text()
        assert VERDICT in text.splitlines()[0] and "\x1b" not in text
