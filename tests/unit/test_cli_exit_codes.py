"""`envcheck doctor` from the command line: its exit codes, by what is found and asked for, and its faces."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from build import document
from h100 import empty_machine, lost_gpu, machine, with_fault
from test_report_glance import hot

from envcheck.checks.registry import areas
from envcheck.cli.main import run
from envcheck.facts import snapshot as snapshots
from envcheck.facts.base import Probe
from envcheck.facts.snapshot import SCHEMA, Snapshot


def blind() -> Snapshot:
    """The healthy machine, whose nvidia-smi did not answer."""
    silent: Probe[object] = Probe(outcome="timeout", reason="no answer within 10 s")
    healthy = machine()
    seen = msgspec.structs.replace(healthy.machine, nvidia_smi=silent)
    return msgspec.structs.replace(healthy, machine=seen)


MACHINES: dict[str, Callable[[], Snapshot]] = {
    "healthy": machine,
    "warn": lambda: with_fault(persistence=False),
    "degraded": lambda: with_fault(power_limit_w=500.0),
    "fail": lambda: with_fault(ecc_uncorrected_volatile=3),
    "blind": blind,
    "empty": empty_machine,
    "lost": lost_gpu,
    "unknown": lambda: Snapshot(schema=SCHEMA, redacted=True, machine=document()),
    "hot": lambda: hot(3),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snapshots")
    for name, make in MACHINES.items():
        (folder / name).write_bytes(snapshots.dump(make()))
    return folder


@pytest.mark.parametrize(
    ("name", "options", "code", "verdict"),
    [
        ("healthy", "", 0, "healthy: "),
        ("healthy", "--fail-on warn", 0, "healthy: "),
        ("warn", "", 0, "1 warning: "),
        ("warn", "--fail-on degraded", 0, "1 warning: "),
        ("warn", "--fail-on warn", 1, "1 warning: "),
        ("degraded", "", 0, "degraded: GPU 3 has a lowered power limit"),
        ("degraded", "--fail-on degraded", 1, "degraded: "),
        ("degraded", "--fail-on warn", 1, "degraded: "),
        ("warn", "--fail-on warn --exit-zero", 0, "1 warning: "),
        ("fail", "", 1, "1 problem: "),
        ("fail", "--exit-zero", 0, "1 problem: "),
        ("fail", "--only host", 0, "no problem in what was asked for: "),
        ("fail", "--only host gpu-002", 1, "1 problem: "),
        ("fail", "--skip GPU-002", 0, "no problem in what was asked for: "),
        ("fail", "--only gpu --skip GPU-002", 0, "no problem in what was asked for: "),
        ("blind", "", 4, "could not look at everything: "),
        ("blind", "--exit-zero", 0, "could not look at everything: "),
        ("blind", "--skip driver", 0, "no problem in what was asked for: "),
        ("empty", "", 1, "no NVIDIA GPU in this machine"),
        ("lost", "--fail-on warn", 1, "1 problem: "),
        ("unknown", "", 0, "nothing was judged"),
        ("healthy", "--only CFG-001", 0, "nothing was judged"),
        ("healthy", f"--skip {','.join(areas())}", 0, "nothing was judged"),
    ],
)
def test_what_is_found_decides(
    saved: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    options: str,
    code: int,
    verdict: str,
) -> None:
    command = ["doctor", "--from", str(saved / name), "--format", "json", *options.split()]
    assert run(command) == code
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"].startswith(verdict)
    assert (report["status"] == "broken") == (
        name in ("fail", "lost", "empty") and "no problem" not in verdict
    )


VERDICT = "1 problem: GPU 3 is throttled by heat"


def printed(capsys: pytest.CaptureFixture[str], saved: Path, *options: str) -> str:
    assert run(["doctor", "--from", str(saved / "hot"), *options]) == 1, (
        "no face changes the exit code"
    )
    return capsys.readouterr().out


def test_less_and_more(capsys: pytest.CaptureFixture[str], saved: Path) -> None:
    assert printed(capsys, saved, "-q") == f"✗ {VERDICT}\n"
    text, full = printed(capsys, saved), printed(capsys, saved, "-v")
    assert "Skipped: " in full and "Skipped: " not in text
    assert "machine.nvml.gpus[3].clock_sm_mhz = 345 (" in full and "SM clock: 345 MHz;" in text


def test_a_file_gets_signs_and_no_colour(
    capsys: pytest.CaptureFixture[str], saved: Path, tmp_path: Path
) -> None:
    for options in ((), ("-q",)):
        printed(capsys, saved, *options, "--output", str(tmp_path / "report"))
        text = (tmp_path / "report").read_text()
        assert VERDICT in text.splitlines()[0] and "\x1b" not in text


INTERRUPTED = """
import sys
import envcheck.__main__, envcheck.cli.main
def run(argv):
    exec("raise KeyboardInterrupt")
envcheck.cli.main.run = run
sys.exit(envcheck.__main__.main())
"""


def test_an_interrupt_in_the_exec_of_a_string_is_130_and_no_death_by_a_signal(
    tmp_path: Path,
) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    argv = [sys.executable, "-m", "interrupted"]
    ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, b"envcheck: interrupted\n")
