"""What a user does wrong, and what envcheck says: one sentence, the right exit code, nothing lost."""

from __future__ import annotations

import stat
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from cli import PYTHON, envcheck, environment, refused
from processes import ran

HEALTHY = (files("envcheck.data") / "demos" / "healthy.json").read_bytes()


def script(path: Path, text: str) -> Path:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b'{"schema": 1, "machine": {"orig', "not valid JSON"),
        (b'{"schema": 99, "machine": {}, "redacted": true}', "upgrade envcheck"),
        (b'{"schema": 1, "machine": 3, "redacted": true}', "$.machine"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (HEALTHY.replace(b'"schema"', b'"x": "\xff", "schema"', 1), "not UTF-8"),
        (HEALTHY.replace(b'"schema"', b'"x": ' + b"9" * 6000 + b', "schema"', 1), "out of range"),
    ],
)
def test_a_snapshot_that_cannot_be_read(tmp_path: Path, content: bytes, word: str) -> None:
    file = tmp_path / "machine.json"
    file.write_bytes(content)
    sentence = refused(envcheck("doctor", "--from", file))
    assert str(file) in sentence
    assert word in sentence


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["doctor", "--from", "/nowhere.json"], "/nowhere.json: No such file"),
        (["doctor", "--output", "/nowhere/report.txt"], "there is no directory /nowhere"),
        (["doctor", "--output", "/"], "this is a directory"),
        (["doctor", "--from", "x", "--target", "y"], "not allowed with"),
        (["doctor", "--target", "image:--privileged"], "not an image's name"),
        (["doctor", "--target", ""], "the path is empty"),
        (["collect", "--nvidia-smi", "/nowhere.xml"], "/nowhere.xml: No such file"),
        (["collector", "--output", "collector.exe"], "must end in .pyz or .py"),
        (["doctor", "--deadline", "soon"], "not a number of seconds"),
        (["doctor", "--frobnicate"], "there is no option"),
    ],
)
def test_wrong_usage(arguments: list[str], word: str) -> None:
    assert word in refused(envcheck(*arguments))


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("echo garbage", ""),
        ("exit 0", ""),
        ("echo broken >&2; exit 7", "is not a Python interpreter"),
        ("kill -SEGV $$", "signal 11"),
        ("exec yes", "16 MiB"),
        ("sleep 600 & sleep 600", "no answer within 5"),
    ],
)
def test_a_target_whose_handshake_fails(tmp_path: Path, content: str, word: str) -> None:
    target = script(tmp_path / "python", content)
    sentence = refused(envcheck("doctor", "--target", target))
    assert str(target) in sentence
    assert word in sentence


@pytest.mark.parametrize(
    "arguments",
    [["explain"], ["schema"], ["doctor", "--format", "json"], ["--version"], ["doctor", "--help"]],
)
def test_standard_output_that_is_full_is_said(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [PYTHON, "-m", "envcheck", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    assert result.returncode == 2
    assert result.stderr.decode().startswith("envcheck: standard output: No space left")
    assert b"Exception" not in result.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    for arguments in (["explain"], ["schema"], ["--help"], ["--version"]):
        shown = ran(
            ["sh", "-c", f"{PYTHON} -m envcheck {arguments[0]} | head -n 1"], env=environment()
        )
        assert shown.stdout.count(b"\n") == 1
        assert shown.stderr == b""


def test_an_internal_error_is_one_sentence() -> None:
    broken = "import envcheck.cli.explain as e; e.run = lambda a: 1 / 0; import sys; "
    call = "from envcheck.cli.main import run; sys.exit(run(['explain']))"
    result = ran([PYTHON, "-c", broken + call], env=environment())
    assert result.returncode == 4
    assert b"internal error: ZeroDivisionError" in result.stderr
    assert b"Traceback" not in result.stderr
