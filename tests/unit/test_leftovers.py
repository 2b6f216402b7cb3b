"""What killed runs leave is found; what the living use, and what is not envcheck's, stays."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from envcheck import scratch
from envcheck.collector.runtime import scratch as collectors
from envcheck.install import leftovers


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return folder


def aged(path: Path, seconds: float) -> Path:
    then = time.time() - seconds
    os.utime(path, (then, then), follow_symlinks=False)
    return path


def test_what_the_living_work_in_stays(temporary: Path) -> None:
    collector = Path(collectors.make())
    with scratch.directory() as folder:
        for path in (folder, collector):
            aged(path, 1e6)
            assert path.parent == temporary and not any(path.iterdir())
        assert leftovers.find() == []
    assert not folder.exists()
    collectors.remove(str(collector))
    assert not collector.exists()


def test_what_the_dead_worked_in_is_found(temporary: Path) -> None:
    dead = aged(Path(tempfile.mkdtemp(prefix=scratch.HELD)), 60)
    (dead / "file").write_bytes(b"12345")
    aged(dead, 60)
    new = Path(tempfile.mkdtemp(prefix=scratch.HELD))  # its lock may be a moment away
    aged(Path(tempfile.mkdtemp(prefix="envcheck-")), 1e6)
    link = temporary / "envcheck-held-link"
    link.symlink_to(new)
    aged(link, 1e6)
    (temporary / "envcheck-held-file").touch()
    aged(temporary / "envcheck-held-file", 1e6)
    assert leftovers.find() == [dead]
