"""Files, names and paths as odd machines have them: none of them stops the collector."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest

from envcheck.collector import account, files
from envcheck.collector.packaging import distributions
from envcheck.collector.runtime import shadows
from envcheck.collector.runtime.context import Context


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    for name in ("fifo", "link"):
        with pytest.raises(OSError, match="not a regular file"):
            files.open_regular(str(tmp_path / name))
    with pytest.raises(IsADirectoryError):
        files.open_regular(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        files.open_regular(str(tmp_path / "none"))
    with pytest.raises(OSError, match="not a regular file"):
        files.open_regular("/dev/zero")


def test_metadata_that_is_a_fifo_holds_nobody_up(tmp_path: Path) -> None:
    home = tmp_path / "nvidia_odd-1.0.dist-info"
    home.mkdir()
    for name in ("METADATA", "RECORD", "INSTALLER"):
        os.mkfifo(home / name)
    (found,) = distributions.find([str(tmp_path)])
    assert (found.name, found.version) == ("nvidia_odd", "1.0")
    with pytest.raises(OSError, match="not a regular file"):
        list(distributions.recorded(found))


def test_names_and_homes_without_asking_the_network(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    context = Context({}, root=str(tmp_path))
    assert (account.entry(context), account.name(context), account.home(context)) == (None, "", "")
    (tmp_path / "etc/passwd").write_bytes(
        b"broken\n\xff:x:%d:0:\xff:/h\xff/:/bin/sh\n" % os.geteuid()
    )
    assert (account.name(context), account.home(context)) == ("\ufffd", "/h\ufffd")
    context = Context({"HOME": "/", "USER": "somebody"}, root=str(tmp_path / "none"))
    assert (account.name(context), account.home(context)) == ("somebody", "/")


def test_what_lies_on_pythonpath_is_left_to_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("colorsys", "this_is_new"):
        (tmp_path / f"{name}.py").write_text("WHOSE = 'theirs'\n")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "/nowhere", str(tmp_path)]))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with shadows.hidden():
        assert str(tmp_path) not in sys.path
        assert not hasattr(importlib.import_module("colorsys"), "WHOSE")
        with pytest.raises(ImportError):
            importlib.import_module("this_is_new")
    assert sys.path[0] == str(tmp_path)
    assert importlib.import_module("colorsys").WHOSE == "theirs"
    monkeypatch.delitem(sys.modules, "colorsys")
