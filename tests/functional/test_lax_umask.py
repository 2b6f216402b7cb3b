"""Under umask 0, nothing that envcheck writes is for everybody to change, and what identifies is private."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli import envcheck
from demo_stack import demo
from installing import Home


@pytest.fixture(autouse=True)
def _lax() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_snapshots(tmp_path: Path) -> None:
    plain, whole, saved = (tmp_path / name for name in ("plain", "whole", "saved"))
    whole.touch(0o666)
    source = tmp_path / "smi.txt"
    source.write_text(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    )
    for output, options in ((plain, []), (whole, ["--no-redact"])):
        run = envcheck("collect", "--nvidia-smi", source, "--output", output, *options)
        assert run.returncode == 0, run.stderr.decode()
    envcheck("doctor", "--from", whole, "--save", saved, "--output", tmp_path / "report")
    envcheck("collector", "--output", tmp_path / "collector.py")
    assert (mode(plain), mode(whole)) == (0o644, 0o600)
    assert (mode(saved), mode(tmp_path / "report")) == (0o644, 0o644)
    assert mode(tmp_path / "collector.py") == 0o755


def test_an_installation(tmp_path: Path) -> None:
    with demo(tmp_path / "demo") as shop:
        home = Home(tmp_path / "home")
        home.folder.mkdir()
        home.install(*shop.selection)
        home.envcheck("list")
        run = home.envcheck("run", "sh", "-c", f"umask; : > {tmp_path}/made")
    assert run.stdout.strip() == b"0000", run.stderr.decode()
    assert mode(tmp_path / "made") == 0o666, "a command keeps its user's umask"
    lax = [
        path
        for part in ("cache", "data", "state")
        for path in [home.folder / part, *(home.folder / part).rglob("*")]
        if not path.is_symlink()
        # uv's locks are empty, and for everybody by intent.
        and not (path.name.endswith(".lock") and path.stat().st_size == 0)
        and mode(path) & (stat.S_IWGRP | stat.S_IWOTH)
    ]
    assert lax == []
