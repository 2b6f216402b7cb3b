"""A version in which a command runs is not taken away under it; and what goes wrong around a transaction."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli import environment
from processes import PATIENCE
from transaction_parts import TinyBuilder, install, is_tidy, runs

from envcheck.exit_codes import Cannot, PutBack, UsageError
from envcheck.install import places
from envcheck.install.prune import prune
from envcheck.install.transaction import lock
from envcheck.install.transaction.current import rollback
from envcheck.install.transaction.journal import Journal
from envcheck.install.transaction.layout import Root
from envcheck.install.transaction.uninstall import uninstall

pytestmark = pytest.mark.usefixtures("scratch_home")


@contextmanager
def running(root: Path, version: str, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """`envcheck run sh -c SCRIPT`, from when it has said something until its input ends."""
    argv = [sys.executable, "-m", "envcheck", "run", "--path", root, "--version", version]
    process = subprocess.Popen(
        [*argv, "--", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "script", ["echo ready; read x", "exec 5<&0; (echo ready; read x <&5) & exec sleep 0"]
)
def test_what_runs_keeps_its_version(tmp_path: Path, script: str) -> None:
    """Also where the command is over and has left another one running."""
    root = tmp_path / "root"
    old, new = install(root, "1").version, install(root, "2").version
    version = Root(root).version(old)
    with running(root, old, script):
        for only in (old, ""):
            with pytest.raises(Cannot, match="is still running in it") as refused:
                uninstall(Root(root), only)
            assert str(version.directory) in str(refused.value) and "fuser" in refused.value.hint
        done = prune(keep=0)
        assert [kept.why for kept in done.kept if kept.version == old] == [
            "a command that envcheck run started is running in it"
        ]
        assert not lock.is_busy(Root(root).version(new))
        assert runs(root) == "2" and version.directory.is_dir()
    assert not lock.is_busy(version)
    assert [removed.version for removed in prune(keep=0).removed] == [old]
    uninstall(Root(root))
    assert not root.exists()


@pytest.mark.parametrize("name", ["start.json", "record.json", "pylock.toml", "held.json"])
def test_a_package_that_writes_envcheck_s_records_is_not_installed(
    tmp_path: Path, name: str
) -> None:
    class Writing(TinyBuilder):
        def install(self, directory: Path) -> None:
            super().install(directory)
            (directory / ".envcheck" / name).write_text("{}")  # as a wheel's data can

    root = tmp_path / "root"
    install(root, "1")
    with pytest.raises(PutBack, match=f"a package has written .envcheck/{name} into"):
        install(root, "2", builder=Writing("2"))
    assert runs(root) == "1"
    is_tidy(root, versions=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def test_a_state_that_cannot_be_written_keeps_nothing_from_being_done(root: Path) -> None:
    places.state().parent.mkdir(parents=True)
    places.state().write_text("in the way")  # also root cannot write below a file
    found = [install(root, "1").notes, install(root, "2").notes, install(root, "2").notes]
    found.append(rollback(Root(root)).notes)
    assert all(len(notes) == 1 and str(places.state()) in notes[0] for notes in found)
    assert runs(root) == "1"
    done = uninstall(Root(root))
    assert len(done.versions) == 2 and not root.exists()


def test_a_full_disk_is_named_with_its_file_and_what_to_do(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(root, "1")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    builder = TinyBuilder("2", lambda step: monkeypatch.setattr(os, "fsync", full))
    with pytest.raises(PutBack) as undone:
        install(root, "2", builder=builder)
    assert f"{Root(root).journal}: No space left" in str(undone.value)
    assert "make room" in undone.value.hint
    assert runs(root) == "1"


def test_tens_of_thousands_of_planted_names_cost_one_look(root: Path) -> None:
    """Each would be written down as taken back, and waited for until it is on the disk."""
    install(root, "1")
    journal = Root(root).journal
    line = journal.read_text().splitlines()[0]
    version = json.loads(line)["version"]
    planted = "".join(
        line.replace(version, f"1-py3.11-{number:08x}") + "\n" for number in range(30_000)
    )
    journal.write_text(journal.read_text() + planted)
    size = journal.stat().st_size
    with pytest.raises(Cannot, match="no other version"):
        rollback(Root(root))
    assert journal.stat().st_size == size and runs(root) == "1"


def test_a_root_exchanged_for_a_link_between_look_and_lock_is_not_written_to(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(root, "1")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    flock = fcntl.flock

    def exchanged(handle: int, kind: int) -> None:
        if not (root / ".envcheck").is_symlink():
            (root / ".envcheck").rename(tmp_path / "away")
            (root / ".envcheck").symlink_to(elsewhere)
        flock(handle, kind)

    monkeypatch.setattr(fcntl, "flock", exchanged)
    with pytest.raises(UsageError, match="this is a symbolic link"):
        rollback(Root(root))
    assert not list(elsewhere.iterdir())
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        Journal(Root(root).journal).append("1-py3.11-00000000", "begun")
    assert not list(elsewhere.iterdir())
