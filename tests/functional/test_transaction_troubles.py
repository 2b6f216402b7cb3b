"""What goes wrong around a transaction: it is said with the file and what to do, and it costs no more."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from pathlib import Path

import pytest
from transaction_parts import TinyBuilder, install, runs

from envcheck.exit_codes import Cannot, PutBack, UsageError
from envcheck.install import places
from envcheck.install.transaction.current import rollback
from envcheck.install.transaction.journal import Journal
from envcheck.install.transaction.layout import Root
from envcheck.install.transaction.uninstall import uninstall

pytestmark = pytest.mark.usefixtures("scratch_home")


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
