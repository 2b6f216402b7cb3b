"""kill -9 and full disks while a real podman pulls for `envcheck install`: its storage stays whole, what was
installed before runs, and the next installation comes through."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from bad_server import Way
from leftovers import unmount_below
from processes import PATIENCE
from test_install_container_troubles import (  # noqa: F401 - fixtures, too
    SIZE,
    Place,
    archive,
    place,
    world,
)

from envcheck.exit_codes import ExitCode

pytestmark = pytest.mark.drill

ROUNDS = 60  # kills; each run ends with a whole installation
FULL = 10  # disks


def fill(folder: Path) -> None:
    with (folder / "fill").open("wb") as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
            file.flush()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Makes a file system on which an installation has room, and not much more."""
    folder = tmp_path / "small"

    def make() -> Path:
        folder.mkdir()
        argv = ["mount", "-t", "tmpfs", "-o", "size=256m", "envcheck-test", folder]
        made = subprocess.run(argv, capture_output=True, check=False)
        if made.returncode:
            pytest.skip(f"no file system can be mounted here: {made.stderr.decode().strip()}")
        return folder

    try:
        yield make
    finally:
        unmount_below(folder)


@pytest.fixture
def settled(place: Place) -> Iterator[Place]:  # noqa: F811
    """Somebody's own image is in the storage, with a name."""
    place.world.podman("tag", place.world.image("base"), "localhost/mine:1")
    yield place
    place.world.podman("untag", place.world.image("base"), "localhost/mine:1")


def test_killed_at_random_moments_of_a_pull(settled: Place) -> None:
    """Every second time the engine is killed with envcheck, else it is left alone with its storage."""
    chance, before, finished = random.Random(21), settled.world.images(), 0
    for number in range(ROUNDS):
        settled.server.behave(settled.layer, Way(rate=SIZE / 1.5, times=None))
        with settled.begun(chance.randrange(1, SIZE + 200_000)) as process:
            if number % 2:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            _, errors = process.communicate(timeout=PATIENCE)
        finished += process.returncode == 0
        assert b"Traceback" not in errors and process.returncode in (0, -signal.SIGKILL), errors
        _is_whole(settled, before)
        if number % 15 == 14:
            _comes_through(settled, before)
    print(f"{ROUNDS - finished} of {ROUNDS} runs were killed")
    _comes_through(settled, before)


def test_storages_that_fill_up_at_random_moments(settled: Place, small: Callable[[], Path]) -> None:
    folder, chance, ends = small(), random.Random(21), []
    own = settled.home.folder / "storage.conf"
    own.parent.mkdir(exist_ok=True)
    text = (settled.world.folder / "storage.conf").read_text()
    own.write_text(text.replace(str(settled.world.storage), str(folder / "storage")))
    changes = {"CONTAINERS_STORAGE_CONF": str(own)}
    for _ in range(FULL):
        settled.server.behave(settled.layer, Way(rate=SIZE, times=None))
        with settled.begun(chance.randrange(1, SIZE), **changes) as process:
            fill(folder)
            _, errors = process.communicate(timeout=PATIENCE)
        assert b"Traceback" not in errors, errors
        ends.append(process.returncode)
        (folder / "fill").unlink(missing_ok=True)
        left = settled.world.podman("images", "--all", "--quiet", "--no-trunc", **changes).stdout
        if process.returncode == ExitCode.NOT_PUT_BACK:  # podman removes nothing on a full disk
            assert left.split()[0].encode() in errors, (errors, left)
        else:
            assert process.returncode == ExitCode.PUT_BACK, errors
            assert not left or b"the image stays in podman" in errors, (errors, left)
        done = settled.envcheck("prune", **changes)
        assert done.returncode == 0, done.stderr
        left = settled.world.podman("images", "--all", "--quiet", **changes).stdout
        assert not left, "with room again, what is left goes"
    print(f"{len(ends)} disks were full; exit codes {sorted(ends)}")
    settled.server.behave(settled.layer)
    assert settled.installed(**changes).returncode == 0
    assert settled.envcheck("uninstall", "--yes", **changes).returncode == 0


def _is_whole(place: Place, before: set[str]) -> None:  # noqa: F811
    """podman reads its storage, has what it had, and starts it; envcheck reads its own."""
    assert before <= place.world.images()
    ran = place.world.podman("run", "--rm", "localhost/mine:1", "true", code=None)
    assert ran.returncode == 0, ran.stderr
    listed = place.envcheck("list")
    assert listed.returncode == 0, listed.stderr


def _comes_through(place: Place, before: set[str]) -> None:  # noqa: F811
    """A whole installation runs, and with it everything goes again, what was kept for none included."""
    place.server.behave(place.layer)
    done = place.installed()
    assert done.returncode == 0, done.stderr
    ran = place.envcheck("run", "--", "true")
    assert ran.returncode == 0, ran.stderr
    place.uninstall()
    assert place.envcheck("prune").returncode == 0
    assert place.nothing_is_left(before)
