"""`envcheck bundle`, killed or with a full disk at any of its changes.

There is never half a bundle, and the next run succeeds.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from demo_stack import Demo, demo
from disk_changes import NEVER, changing, full
from transaction_parts import die, in_child
from unpacking import unpack
from wheel_maker import stand_ins, wheel

from envcheck.cli.main import run
from envcheck.install.export import own_wheel

pytestmark = pytest.mark.drill

KILLS = 8  # of each kind of output, spread over all changes of a run, which takes seconds


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("demo")) as running:
        for name, version in stand_ins(own_wheel.build().requires):
            wheel(running.files, name, version)
        running.index.refresh()
        yield running


class World:
    """A home beside which bundles are written, in a directory of their own."""

    def __init__(self, folder: Path, shop: Demo, name: str) -> None:
        self.home = folder / "home"
        self.out = folder / "out"
        self.target = self.out / name
        self._argv = ["bundle", *shop.selection, "--output", str(self.target)]

    def bundle(
        self,
        number: int = 1 << 20,
        happen: Callable[[], None] = die,
        again: bool = False,
        counted: Path | None = None,
    ) -> int:
        """What became of a run in which that happens at its change with this number."""

        def work() -> None:
            signal.alarm(0)  # a busy machine takes its time
            sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
            codes: list[int] = []
            try:
                changing(number, happen, lambda: codes.append(run(self._argv)), again, counted)
            except SystemExit:
                sys.exit(codes[0] or NEVER)
            sys.exit(codes[0])

        return in_child(work)

    def changes(self) -> int:
        """How many a run makes in this home."""
        counted = self.home.parent / "counted"
        assert self.bundle(counted=counted) == NEVER
        self.clear()
        return int(counted.read_text())

    def clear(self) -> None:
        shutil.rmtree(self.out)
        self.out.mkdir()

    def check_target(self) -> bool:
        """Whether a bundle is there; one that is there is whole."""
        if not self.target.exists():
            return False
        folder = self.target
        if folder.suffix == ".tar":
            folder = self.out / "unpacked"
            unpack(self.target, folder)
            folder /= "bundle"
        listed = json.loads((folder / "bundle.json").read_bytes())["files"]
        for name, entry in listed.items():
            data = (folder / name).read_bytes()
            assert (hashlib.sha256(data).hexdigest(), len(data)) == (entry["sha256"], entry["size"])
        if folder != self.target:
            shutil.rmtree(self.out / "unpacked")
        return True


@pytest.fixture(params=["bundle", "bundle.tar"])
def world(
    request: pytest.FixtureRequest, shop: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> World:
    made = World(tmp_path, shop, request.param)
    for name, part in (("HOME", ""), ("XDG_CACHE_HOME", "cache"), ("XDG_STATE_HOME", "state"),
                       ("XDG_DATA_HOME", "data")):  # fmt: skip
        monkeypatch.setenv(name, str(made.home / part))
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    temporary = tmp_path / "tmp"
    for folder in (made.home, made.out, temporary):
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    return made


def spread(changes: int) -> list[int]:
    """Numbers of changes from the first to the last of a run."""
    assert changes > 40, f"a run makes {changes} changes"
    return sorted({round(i * (changes - 1) / (KILLS - 1)) for i in range(KILLS)})


def test_killed_or_on_a_full_disk_at_any_change(world: World) -> None:
    """A killed run leaves no half bundle, and the next one succeeds. From a full disk on, nothing more can be
    written; what was fetched may stay."""
    for count, number in enumerate(spread(world.changes())):
        if count % 2:
            assert world.bundle(number) in (-signal.SIGKILL, NEVER)
            world.check_target()
        else:
            shutil.rmtree(world.home / "cache", ignore_errors=True)
            ended = world.bundle(number, full, again=True)
            assert ended in (0, NEVER, 2, 3, 4, 5), ended
            assert (ended in (0, NEVER)) == world.check_target(), ended
            assert [path for path in world.out.iterdir() if path != world.target] == []
        world.clear()
    assert world.bundle() == NEVER and world.check_target()
