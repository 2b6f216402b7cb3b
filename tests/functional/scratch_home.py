"""A home of a test's own, for what is called in this process."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def scratch_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is flushed to the disk, either: what a kill leaves is in the kernel's memory anyway."""
    for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / "HOME").mkdir()
    (tmp_path / "TMP").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "TMP"))  # for what a kill leaves
    monkeypatch.setattr(os, "fsync", lambda handle: None)
