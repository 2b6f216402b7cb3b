"""A version in which a command is running is not taken away under it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli import environment
from processes import PATIENCE
from transaction_parts import TinyBuilder, install, is_tidy, runs

from envcheck.exit_codes import Cannot, PutBack
from envcheck.install.prune import prune
from envcheck.install.transaction import lock
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
