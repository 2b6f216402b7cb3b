"""HOME of another user, or none: refused before anything is written, by every command that writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from planted import fingerprint
from transaction_parts import install

from envcheck.cli.main import run as envcheck

NAMES = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with two versions; then no XDG variable is set any more."""
    home = tmp_path / "own"
    home.mkdir()
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    for release in ("1", "2"):
        install(tmp_path / "env", release)
    return tmp_path / "env"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another user's home, who has prepared where envcheck would write."""
    if os.geteuid() != 0:
        pytest.skip("only root gives a directory to another user")
    home = tmp_path / "other"
    (home / ".cache").mkdir(parents=True)
    (tmp_path / "victim").mkdir()
    (home / ".cache" / "envcheck").symlink_to(tmp_path / "victim")
    os.chown(home, 12345, -1)
    return home


def commands(root: Path) -> dict[str, list[str]]:
    wheel = ["tensorflow-cpu", "--mode", "wheel", "--index", "http://127.0.0.1:9/simple/"]
    return {
        "install": ["install", *wheel, "--yes"],
        "install of what is there": ["install", *wheel, "--path", str(root), "--yes"],
        "plan": ["install", *wheel, "--plan"],
        "bundle": ["bundle", *wheel, "--output", str(root.parent / "bundle")],
        "rollback": ["rollback", str(root)],
        "uninstall": ["uninstall", str(root), "--yes"],
        "prune": ["prune"],
        "prune one": ["prune", str(root)],
    }


def test_another_user_s_home(
    root: Path, other: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(other))
    before = fingerprint(root.parent)
    for words in commands(root).values():
        assert envcheck(words) == 3
        errors = capsys.readouterr().err
        assert f"HOME is {other}, which belongs to user " in errors and "sudo -H" in errors
    assert fingerprint(root.parent) == before


def test_a_home_that_is_not_there_is_not_made(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = root.parent / "missing"
    monkeypatch.setenv("HOME", str(missing))
    before = fingerprint(root.parent)
    for words in commands(root).values():
        assert envcheck(words) == 3
        errors = capsys.readouterr().err
        assert f"HOME is {missing}, which cannot be used: No such file or directory" in errors
    assert fingerprint(root.parent) == before
