"""`envcheck releases` as its user runs it: on this machine, on a Snapshot, and on bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli import envcheck, refused

OWN = """\
name = "mine"
title = "A stack of my own"
distribution = "tensorflow"
requirement = "tensorflow=={version}"
gpu = false
architectures = ["x86_64", "aarch64"]
source = "me"

[[releases]]
release = "2.0"
version = "2.0"
python = ["3.99"]
source = "me"
installed-mib = 900000000

[[releases]]
release = "1.0"
version = "1.0"
python = ["3.99"]
glibc = "99.1"
prerelease = true
source = "me"
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """A home with nothing in it, and a network that nobody answers in."""
    folder = tmp_path / "home"
    folder.mkdir()
    dead = "http://127.0.0.1:9"
    proxies = {"HTTP_PROXY": dead, "HTTPS_PROXY": dead, "ALL_PROXY": dead, "NO_PROXY": ""}
    return {"HOME": str(folder), "XDG_DATA_HOME": "", "XDG_CACHE_HOME": "", **proxies}


def printed(*arguments: str | Path, **environment: str) -> str:
    result = envcheck("releases", *arguments, **environment)
    assert result.returncode == 0, result.stderr.decode()
    assert result.stderr == b""
    return result.stdout.decode()


def read(*arguments: str | Path, **environment: str) -> Any:
    return json.loads(printed(*arguments, "--format", "json", **environment))


def test_the_matrix_of_this_machine(home: dict[str, str]) -> None:
    text = printed(**home)
    for stack in ("nvidia-tf1", "tensorflow", "tensorflow-cpu", "tensorflow1"):
        assert f"\n{stack} " in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "envcheck install\n  would install " in text
    assert not list(Path(home["HOME"]).iterdir()), "nothing is written"


def test_all_of_it_as_json(home: dict[str, str]) -> None:
    matrix = read("--stack", "tensorflow-cpu", **home)
    (stack,) = matrix["stacks"]
    assert (matrix["schema"], stack["name"], stack["gpu"]) == (3, "tensorflow-cpu", False)
    assert len(stack["releases"]) > 10
    for row in stack["releases"]:
        assert row["fits"] == ("yes" if not row["refusals"] else row["fits"])
        assert all(refusal["sentence"] for refusal in row["refusals"])
    chosen = matrix["chosen"]
    assert chosen["release"] == stack["newest_that_fits"]
    assert chosen["stack"] == ("tensorflow-cpu" if chosen["release"] else "")


def test_a_stack_of_one_s_own(home: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN)
    matrix = read("--stack", file, **home)
    newest, oldest = matrix["stacks"][0]["releases"]
    assert [refusal["kind"] for refusal in newest["refusals"]] == ["python", "disk"]
    assert [one["kind"] for one in oldest["refusals"]] == ["prerelease", "libc", "python"]
    assert "no release of mine fits this machine" in matrix["chosen"]["refused"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--stack", "tensorflw"], 'no stack "tensorflw"'),
        (["--stack", "./nowhere.toml"], "nowhere.toml"),
        (["--from", "/nowhere.json"], "/nowhere.json"),
        (["--python", "/nowhere/python3"], "there is no /nowhere/python3"),
        (["--python", "3.8", "--from", "machine.json"], "not allowed with argument --python"),
        (["--output", "/nowhere/file"], "/nowhere"),
        (["--mode", "container", "--python", "3.8"], "--python is for wheels"),
    ],
)
def test_bad_input_is_one_sentence(home: dict[str, str], arguments: list[str], words: str) -> None:
    assert words in refused(envcheck("releases", *arguments, **home))
