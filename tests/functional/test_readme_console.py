"""README's console block is what is printed: each command is run, and held against the lines there."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli import PYTHON, environment
from processes import ran

README = Path(__file__).resolve().parents[2] / "README.md"
ANY = "…"  # a line of README that stands for any number of lines


def block() -> dict[str, list[str]]:
    """Command → the lines that README shows of it."""
    (text,) = re.findall(r"```console\n(.*?)```", README.read_text(), re.DOTALL)
    shown: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("$ "):
            command = line[2:]
            shown[command] = []
        else:
            shown[command].append(line)
    return shown


@pytest.fixture
def home() -> Iterator[Path]:
    """As long as README's /home/ann, so that lines break where they do there."""
    for name in map(str, range(1000, 10000)):
        path = Path("/tmp", name)
        if not path.exists():
            path.mkdir(mode=0o700)
            break
    yield path
    subprocess.run(["rm", "-rf", path], check=True)


def printed(command: str, home: Path) -> list[str]:
    """All that it prints, as README would have it."""
    with tempfile.TemporaryDirectory() as folder:
        envcheck = Path(folder, "envcheck")
        envcheck.write_text(f'#!/bin/sh\nexec {PYTHON} -m envcheck "$@"\n')
        envcheck.chmod(0o755)
        names = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
        env = environment(HOME=str(home), COLUMNS="80", ENVCHECK_COMMAND="envcheck")
        env = {name: value for name, value in env.items() if name not in names}
        env["PATH"] = f"{folder}:/usr/local/bin:/usr/bin:/bin"
        done = ran(["sh", "-c", f"{command} 2>&1"], env=env, cwd=home)
    return plain(done.stdout.decode().replace(str(home), "/home/ann"))


def plain(text: str) -> list[str]:
    """Without what is this machine's: versions of Python, hashes, numbers of packages."""
    text = re.sub(r"py3\.\d+-[0-9a-f]{8}", "py3.N-HASH", text)
    text = re.sub(r"(python +)3\.\d+\.\d+, \d+ packages", r"\1VERSION, N packages", text)
    return text.splitlines()


def agrees(shown: list[str], lines: list[str]) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line == ANY else re.escape(line) + r"\n" for line in plain("\n".join(shown))
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def test_what_is_refused_without_a_gpu(home: Path) -> None:
    lines = printed("envcheck install", home)
    if not any("no NVIDIA GPU" in line for line in lines):
        pytest.skip("README's machine has no GPU")
    assert agrees(block()["envcheck install"], lines), "\n".join(lines)


@pytest.mark.slow
def test_the_whole_block(home: Path) -> None:
    for command, shown in block().items():
        lines = printed(command, home)
        if "does not answer" in lines[-1]:
            pytest.skip(f"no package registry is reachable: {lines[-1]}")
        assert agrees(shown, lines), "\n".join([f"$ {command}", *lines])


def test_any_number_of_lines_and_no_other_agree() -> None:
    assert agrees(["a", ANY, "d"], ["a", "b", "c", "d"]) and agrees(["a", ANY], ["a"])
    assert not agrees(["a", "b"], ["a", "c"]) and not agrees(["a"], ["a", "b"])
