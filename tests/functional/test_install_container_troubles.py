"""`envcheck install --mode container` where the registry, the disk or a signal is in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import standin_image
from bad_server import BadServer, Way
from cli import environment
from install_site import Site
from installing import Home
from podman import PodmanWorld
from processes import PATIENCE

from envcheck.exit_codes import ExitCode

SIZE = 12_000_000  # bytes of the layer that things happen to
TAG = standin_image.manifest("1")


@dataclass
class Place(Site):
    """With an image at a server that misbehaves. layer: the path of the one that podman lacks."""

    server: BadServer
    layer: str

    @property
    def argv(self) -> list[str]:
        name = standin_image.name(self.server)
        words = ["install", "--mode", "container", "--image", name, "--yes"]
        return [sys.executable, "-m", "envcheck", *words]

    def installed(self, **changes: str) -> subprocess.CompletedProcess[bytes]:
        with self.begun(0, **changes) as process:
            output = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(self.argv, process.returncode, *output)

    @contextmanager
    def begun(self, most: int, **changes: str) -> Iterator[subprocess.Popen[bytes]]:
        """An installation, from the moment at which so many bytes of the layer are sent."""
        sent = self.server.sent(self.layer)
        with subprocess.Popen(
            self.argv,
            env=environment(**(self.variables | changes)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                while self.server.sent(self.layer) - sent < most and process.poll() is None:
                    time.sleep(0.02)
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, podman_world: PodmanWorld) -> Path:
    folder = tmp_path_factory.mktemp("image")
    base = podman_world.image("base")
    (folder / "data").write_bytes(os.urandom(SIZE))
    name = podman_world.build(
        "localhost/envcheck-test/large:1",
        f"FROM {base}\nCOPY data /data\n",
        {"data": folder / "data"},
    )
    return podman_world.save(name, folder / "image.tar")


@pytest.fixture
def place(tmp_path: Path, world: PodmanWorld, archive: Path) -> Iterator[Place]:
    with BadServer() as server:
        sizes = standin_image.put_archive(server, archive)
        (layer,) = (path for path, size in sizes.items() if SIZE <= size < SIZE + 100_000)
        yield Place(Home(tmp_path / "home"), world, server, layer)


@pytest.mark.parametrize(
    ("status", "headers", "code", "sentence", "hint"),
    [
        (401, {}, ExitCode.COULD_NOT_LOOK, "does not give", "podman login"),
        (404, {}, ExitCode.USAGE, "has no tag 1 of team/image", "mistyped"),
        (503, {}, ExitCode.COULD_NOT_LOOK, "503", "try again later"),
    ],
)
def test_what_a_registry_answers_for_a_tag(
    place: Place, status: int, headers: dict[str, str], code: int, sentence: str, hint: str
) -> None:
    before = place.world.images()
    place.server.behave(TAG, Way(status=status, headers=headers, times=None))
    done = place.installed()
    _is_one_sentence(done, code, sentence, hint)
    assert place.nothing_is_left(before)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_after_an_end_in_the_middle_the_next_run_goes_on(place: Place, how: signal.Signals) -> None:
    """The engine ends too, and keeps what it has whole; a tag is asked for once, so that it cannot move."""
    before = place.world.images()
    place.server.behave(place.layer, Way(rate=2_000_000, times=None))
    with place.begun(2_000_000) as process:
        process.send_signal(how)
        errors = process.communicate(timeout=PATIENCE)[1].decode()
    if how != signal.SIGKILL:
        assert process.returncode == 128 + how and "Traceback" not in errors
        assert place.nothing_is_left(before)
    place.server.behave(place.layer)
    assert len(place.server.seen(TAG)) == 1
    done = place.installed()
    assert done.returncode == 0, done.stderr
    place.uninstall()
    assert place.nothing_is_left(before)


def _is_one_sentence(
    done: subprocess.CompletedProcess[bytes], code: int, sentence: str, hint: str
) -> None:
    errors = done.stderr.decode()
    assert done.returncode == code and not done.stdout, errors
    assert "Traceback" not in errors
    lines = errors.splitlines()
    hints = [line for line in lines if line.startswith("hint: ")]
    (last,) = [line for line in lines if line.startswith("envcheck: ")][-1:]
    assert sentence in last and len(hints) == bool(hint), errors
    assert hint in "".join(hints)
