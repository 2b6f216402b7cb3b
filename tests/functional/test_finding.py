"""Real interpreters, and things that only look like one, found and asked."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest
import pythons
from processes import ran

from envcheck.exit_codes import UsageError
from envcheck.install.pythons import finding, probe
from envcheck.install.pythons.interpreter import Interpreter


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty PATH, no pyenv, no uv's Pythons, and nothing in /usr/bin."""
    executables()  # remembered: it looks below the real home
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    for name in [name for name in os.environ if name.startswith(("UV_", "XDG_", "VIRTUAL_ENV"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(home / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(home / "pyenv"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(home / "etc"))
    monkeypatch.setattr(finding, "_ALWAYS", ())
    monkeypatch.setattr(finding, "_OWN", "/nowhere/python3")
    return home


@cache
def executables() -> dict[int, str]:
    """The interpreters of this machine by minor version: their own files, and no shims."""
    found = {}
    for minor in (6, 7, 8, 10, 11, 12):
        if path := pythons.find(minor, 3):
            asked = [path, "-c", "import sys; print(sys.executable)"]
            shown = ran(asked, text=True, check=True)
            found[minor] = str(Path(shown.stdout.strip()).resolve())
    return found


def any_two() -> list[str]:
    """Two interpreters of different minor versions."""
    found = [path for minor, path in executables().items() if minor > 8]
    if len(found) < 2:
        pytest.skip("this machine has no two Pythons from 3.10 to 3.12")
    return found[:2]


def link(path: Path, to: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)
    return str(path)


def script(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def paths(found: list[Interpreter]) -> list[str]:
    return [one.path for one in found]


def test_every_python_on_path_each_once(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = any_two()
    started: list[str] = []
    ask = finding.ask
    monkeypatch.setattr(finding, "ask", lambda paths: ask(started.extend(p := list(paths)) or p))
    listed = [
        link(machine / "bin" / "python3", first),
        link(machine / "bin" / "python3.97", second),
    ]
    link(machine / "bin" / "python3.98", second)
    link(machine / "bin" / "python3-config", second)
    found = finding.interpreters()
    assert paths(found) == started == listed
    assert [one.found_in for one in found] == ["PATH", "PATH"]
    for one in found:
        nodot = one.minor.replace(".", "")
        assert one.tags[0].startswith(f"cp{nodot}-cp{nodot}") and one.implementation == "CPython"
        assert one.architecture == os.uname().machine


def test_an_environment_gives_the_python_that_it_was_made_with(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = any_two()[0]
    for options in ([], ["--copies"]):
        env = tmp_path / f"env{len(options)}"
        subprocess.run([base, "-m", "venv", "--without-pip", *options, env], check=True)
        monkeypatch.setenv("VIRTUAL_ENV", str(env))
        monkeypatch.setenv("PATH", f"{env}/bin:{machine}/bin")
        found = finding.interpreters()
        assert [Path(path).resolve() for path in paths(found)] == [Path(base)]
        named = finding.interpreters(str(env))
        assert [Path(path).resolve() for path in paths(named)] == [Path(base)]
        assert named[0].found_in == "--python"


def test_what_hangs_is_left_and_what_is_broken_passed_over(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "DEADLINE", 3.0)
    script(machine / "bin" / "python3.1", "sleep 600")
    script(machine / "bin" / "python3.2", "echo 'no such version' >&2; exit 127")
    script(machine / "bin" / "python3.3", "echo hello")
    script(machine / "bin" / "python3.4", "echo '@envcheck{@{}@}envcheck@'")
    link(machine / "bin" / "python3.5", "/nowhere/python3.5")
    (machine / "bin" / "python3.6").write_text("no program")
    good = link(machine / "bin" / "python3.7", any_two()[0])
    assert paths(finding.interpreters()) == [good]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo 'no such version' >&2; exit 127", "is not a Python interpreter"),
        ("echo hello", "is not a Python interpreter"),
        ("echo '@envcheck{@{}@}envcheck@'", "is not a Python interpreter"),
        ("kill -9 $$", "died by signal 9"),
    ],
)
def test_a_broken_one_that_the_user_named_is_an_error(machine: Path, text: str, words: str) -> None:
    path = script(machine / "py", text)
    with pytest.raises(UsageError) as caught:
        finding.interpreters(path)
    assert str(caught.value).startswith(f"--python {path}: {path} {words}")


def test_pyenv_s_versions_are_asked_and_its_shims_are_not(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = any_two()
    versions = machine / "pyenv" / "versions"
    newer = link(versions / "3.99.10" / "bin" / "python", first)
    link(versions / "3.99.9" / "bin" / "python", second)
    script(machine / "pyenv" / "shims" / "python3.99", f"touch {machine}/started; exec {first} $@")
    script(machine / "pyenv" / "shims" / "python3", f'exec {first} "$@"')
    found = finding.interpreters()
    assert paths(found)[0] == newer and [one.found_in for one in found] == ["pyenv", "pyenv"]
    monkeypatch.setenv("PATH", f"{machine}/pyenv/shims")
    found = finding.interpreters()
    assert paths(found)[0] == first, "what the shim starts, and not the shim"
    assert found[0].found_in == "PATH" and not (machine / "started").exists()
