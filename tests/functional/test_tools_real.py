"""TensorFlow 1.15.5 from the registry, resolved, locked and installed on Python 3.7: for real, on request."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli import environment as clean_environment
from processes import PATIENCE
from pythons import need

from envcheck.install import pylock
from envcheck.install.catalogue import load
from envcheck.install.downloads import Downloads
from envcheck.install.fit.models import Candidate, Choice
from envcheck.install.lockfile import Lockfile
from envcheck.install.network.public_index import public_index
from envcheck.install.network.session import Session
from envcheck.install.progress import Meter
from envcheck.install.pythons import finding
from envcheck.install.pythons.interpreter import Interpreter
from envcheck.install.request import Request
from envcheck.install.wheels import environment, installing, resolve
from envcheck.install.wheels.indexes import Indexes

pytestmark = pytest.mark.slow

STACK = "tensorflow1"
PRODUCT = "import tensorflow as tf; print(tf.__version__, tf.Session().run(tf.constant(6.0) * 7.0))"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with Session() as opened:
        yield opened


def test_tensorflow_1_with_uv_and_with_pip(session: Session, tmp_path: Path) -> None:
    interpreter = finding.interpreters(need(7))[0]
    lock = locked(session, interpreter)
    assert [tool.name for tool in lock.building] == ["setuptools", "wheel"]
    path = tmp_path / "pylock.toml"
    pylock.write(lock, path)
    assert pylock.read(path) == lock
    for installer in ("uv", "pip"):
        directory = tmp_path / installer
        install(session, lock, interpreter, Request(installer=installer), directory)  # type: ignore[arg-type]
        told = subprocess.run(
            [directory / "bin" / "python", "-c", PRODUCT],
            capture_output=True,
            text=True,
            env=clean_environment(),
            timeout=PATIENCE,
            check=False,
        )
        assert told.stdout.split() == ["1.15.5", "42.0"], told.stderr
        assert (directory / ".envcheck" / "logs" / "build-gast.log").exists()


def locked(session: Session, interpreter: Interpreter) -> Lockfile:
    stack = load.load(STACK)
    chosen = Candidate(release=stack.releases[0], interpreter=interpreter)
    indexes = Indexes(stack, Request(), public_index(os.environ), session)
    return resolve.resolve(Choice(stack=stack, candidate=chosen), indexes)


def install(
    session: Session,
    lock: Lockfile,
    interpreter: Interpreter,
    request: Request,
    directory: Path,
) -> None:
    stack = load.load(STACK)
    environment.create(directory, interpreter)
    indexes = Indexes(stack, request, public_index(os.environ), session)
    source = installing.FileSource(Downloads(session), indexes)
    progress = installing.FetchProgress({}, Meter(lambda words: None))
    installing.install(directory, lock, stack, request, source, progress)
    environment.configure(directory, stack, lock, "")
