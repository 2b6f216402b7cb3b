"""The script of `envcheck fleet slurm-prolog`, made for a test: its doctor is a line of shell.

A node's `fleet slurm-node` is envcheck's own. The script keeps its files in the test's folder.
"""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from shlex import quote

import pytest
from cli import PYTHON, envcheck
from processes import PATIENCE

DEMOS = Path(__file__).resolve().parents[2] / "envcheck" / "data" / "demos"
DRV_002 = (
    "envcheck: DRV-002 Kernel module (535.104.05) and driver libraries (535.129.03) have different versions:"
    " no program can use a GPU."
)


def executable(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def made(folder: Path, doctor: str, *words: str, path: Path | None = None) -> str:
    """The script. path: where its Slurm commands are."""
    stand_in = executable(
        folder / "envcheck",
        f'case " $* " in *" slurm-node "*) exec {quote(PYTHON)} -m envcheck "$@" ;; esac\n{doctor}',
    )
    done = envcheck("fleet", "slurm-prolog", "--envcheck", stand_in, *words)
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode().replace("\nPATH=", f"\nPATH={path or folder}:", 1)
    text = text.replace("\nLOG=/var/log/envcheck-prolog.log", f"\nLOG={quote(str(folder / 'log'))}")
    return text.replace("\nRUN=/run/envcheck", f"\nRUN={quote(str(folder / 'run'))}")


@cache
def _reports_of(demo: str) -> tuple[bytes, bytes, int]:
    text = envcheck("doctor", "--from", DEMOS / f"{demo}.json")
    data = envcheck("doctor", "--from", DEMOS / f"{demo}.json", "--format=json")
    return text.stdout, data.stdout, text.returncode


def looks_at(folder: Path, demo: str) -> str:
    """A doctor that says of every machine what the real one says of this Snapshot."""
    text, data, code = _reports_of(demo)
    return says(folder, text.decode(), data, code)


def says(folder: Path, text: str, data: bytes, code: int) -> str:
    """A doctor with this report, as text and as JSON."""
    name = f"report-{len(list(folder.glob('report-*')))}"
    (folder / f"{name}.txt").write_text(text)
    (folder / f"{name}.json").write_bytes(data)
    places = [quote(str(folder / f"{name}.{kind}")) for kind in ("json", "txt")]
    return f'case " $* " in *json*) cat {places[0]} ;; *) cat {places[1]} ;; esac; exit {code}'


def fails(folder: Path, code: str, message: str) -> str:
    """A doctor that finds one failure."""
    finding = {"cause": "x", "headline": "x", "level": "fail", "message": message}
    result = {"code": code, "area": "x", "title": "x", "outcome": "fail", "findings": [finding]}
    return says(folder, f"FAIL {code} {message}\n", json.dumps({"results": [result]}).encode(), 1)


def log_of(folder: Path) -> str:
    return (folder / "log").read_text() if (folder / "log").exists() else ""


class WrittenSlurm:
    """Slurm's commands as scripts: sinfo shows the rows of a file, scontrol writes down what it is asked."""

    def __init__(self, folder: Path, *rows: str) -> None:
        self.folder = folder
        self._rows = folder / "rows"
        self._rows.write_text("".join(f"{row}\n" for row in rows))
        self._asked = folder / "asked"
        executable(folder / "sinfo", f"cat {quote(str(self._rows))}")
        drained = r"s/^\(gpu07|[^|]*|[^|]*\)|[^|]*|\([^|]*|[^|]*|[^|]*\)|.*/\1|drained|\2|2026-11-23T06:00|"
        executable(
            folder / "scontrol",
            f'[ "$1" = --oneliner ] || printf "%s\\n" "$*" >>{quote(str(self._asked))}\n'
            f'case "$3" in State=DRAIN) sed -i "{drained}${{4#Reason=}}/" {quote(str(self._rows))} ;; esac',
        )
        for name in ("srun", "scancel"):
            executable(folder / name, "exit 1")

    def updates(self) -> list[str]:
        return self._asked.read_text().splitlines() if self._asked.exists() else []


def run(
    folder: Path, script: str, *words: str, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """As slurmd runs it on gpu07: it waits for the end of the output."""
    variables = {"SLURMD_NODENAME": "gpu07", "SLURM_JOB_ID": "12", **variables}
    place = executable(folder / "script", script.removeprefix("#!/bin/sh\n"))
    command = [str(place), *words]
    started = subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, err = started.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        started.kill()  # and not waited for: it may be stuck in the kernel
        pytest.fail(f"the script does not end: {log_of(folder)}")
    return subprocess.CompletedProcess(command, started.returncode, out, err)
