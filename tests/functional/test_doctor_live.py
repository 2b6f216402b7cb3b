"""The doctor on this machine: a true diagnosis, that replays, and that leaves nothing behind."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from cli import PYTHON, envcheck, environment
from processes import PATIENCE, everything, stretched, wait_for

from envcheck.facts.snapshot import load

NAP = 100_000_000 + os.getpid()  # seconds: this process's own, whatever else runs these tests here

HANG = f"""#!/bin/sh
sleep {NAP} &
exec sleep {NAP}
"""


@pytest.fixture
def hanging_smi(tmp_path: Path) -> Iterator[str]:
    """A PATH on which nvidia-smi hangs for ever, with a child of its own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "nvidia-smi"
    program.write_text(HANG)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    yield f"{folder}{os.pathsep}{os.environ['PATH']}"
    for pid in sleepers():
        os.kill(pid, signal.SIGKILL)


def sleepers() -> list[int]:
    return [one.pid for one in everything() if str(NAP).encode() in one.command]


def has_gpu() -> bool:
    return any(
        (device / "vendor").read_text().strip() == "0x10de"
        for device in Path("/sys/bus/pci/devices").glob("*")
    )


def test_a_machine_without_a_gpu_is_one_finding() -> None:
    if has_gpu():
        pytest.skip("this machine has an NVIDIA device")
    result = envcheck("doctor", "--format", "json")
    assert result.returncode == 1, result.stderr
    report = json.loads(result.stdout)
    failed = [r["code"] for r in report["results"] if r["outcome"] == "fail"]
    assert failed == ["PCI-001"]
    assert not [r for r in report["results"] if r["outcome"] == "could-not-run"]
    assert envcheck("doctor", "--exit-zero").returncode == 0


@pytest.mark.parametrize("form", ["json", "junit"])
def test_a_saved_snapshot_gives_the_same_findings_byte_for_byte(tmp_path: Path, form: str) -> None:
    saved = tmp_path / "machine.json"
    live = envcheck("doctor", "--save", saved, "--format", form)
    replayed = envcheck("doctor", "--from", saved, "--format", form)
    assert live.stdout == replayed.stdout
    assert live.returncode == replayed.returncode
    piped = envcheck("doctor", "--from", "-", "--format", form, stdin=saved.read_bytes())
    assert piped.stdout == live.stdout
    if form == "json":
        report, snapshot = json.loads(live.stdout), json.loads(saved.read_text())
        jsonschema.validate(report, json.loads(envcheck("schema", "report").stdout))
        jsonschema.validate(snapshot, json.loads(envcheck("schema").stdout))


def test_the_snapshot_is_redacted_and_the_live_report_shows_the_real_values(tmp_path: Path) -> None:
    home = tmp_path / "home" / "margaret"
    home.mkdir(parents=True)
    redacted = envcheck("collect", HOME=str(home)).stdout.decode()
    assert str(home) not in redacted
    kept = envcheck("collect", "--no-redact", HOME=str(home)).stdout.decode()
    assert str(home) in kept
    assert load(redacted.encode()).redacted
    assert not load(kept.encode()).redacted
    shown = envcheck("doctor", HOME=str(home)).stdout.decode()
    assert not re.search(r"<(home|user|host|uuid)-\d+>", shown)


def test_a_hung_program_costs_its_deadline_and_is_gone_afterwards(hanging_smi: str) -> None:
    result = envcheck(
        "doctor", "--deadline", f"{stretched(3):.0f}", "--format", "json", PATH=hanging_smi
    )
    report = json.loads(result.stdout)
    outcomes = {r["code"]: r for r in report["results"]}
    assert sleepers() == []
    assert "DRV-003" in outcomes
    outcome = json.dumps(outcomes["DRV-003"])
    assert outcomes["DRV-003"]["outcome"] in ("could-not-run", "fail", "skipped")
    assert "no answer" in outcome


def test_control_c_ends_everything_and_exits_130(hanging_smi: str) -> None:
    leader, follower = pty.openpty()
    running = subprocess.Popen(
        [PYTHON, "-m", "envcheck", "doctor"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment(PATH=hanging_smi, TERM="xterm"),
        start_new_session=True,
    )
    os.close(follower)
    assert wait_for(sleepers)
    running.send_signal(signal.SIGINT)
    assert running.wait(PATIENCE) == 130
    written = b""
    try:
        while chunk := os.read(leader, 65536):
            written += chunk
    except OSError:
        pass  # a terminal whose other side is closed
    os.close(leader)
    assert b"Traceback" not in written
    assert written.rstrip().endswith(b"envcheck: interrupted")
    assert written.count(b"\x1b[?25l") == written.count(b"\x1b[?25h"), "the cursor stayed hidden"
    assert wait_for(lambda: not sleepers())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_envcheck_that_is_killed_takes_its_probes_along(hanging_smi: str, number: int) -> None:
    running = subprocess.Popen(
        [PYTHON, "-m", "envcheck", "collect"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(PATH=hanging_smi),
    )
    assert wait_for(sleepers)
    running.send_signal(number)
    running.wait(PATIENCE)
    assert wait_for(lambda: not sleepers())
