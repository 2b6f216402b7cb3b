"""Files in portions as they arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envcheck.install.lockfile import LockedFile
from envcheck.install.store.errors import FetchError
from envcheck.install.wheels import arriving

NAMES = ("a", "b", "c")


class Coming:
    """A transfer that ends when the test says so."""

    def __init__(self, name: str, size: int = 1) -> None:
        self.total = size
        self.complete = False
        self.error: FetchError | None = None
        self._name = name

    def named(self) -> Path:
        return Path("/store") / self._name


class Files:
    def __init__(self, size: int = 1) -> None:
        self.transfers = {name: Coming(name, size) for name in NAMES}

    def want(self, file: LockedFile, *, first: bool = False) -> Coming:
        return self.transfers[file.sha256]


def wanted(*names: str) -> list[LockedFile]:
    return [LockedFile(name=f"{name}.whl", url="", sha256=name) for name in names]


def portions(files: Any, *names: str, beat: Any = None) -> list[set[str]]:
    found = []
    for paths in arriving.portions(wanted(*names), files, beat):
        assert paths == {name: Path("/store") / name for name in paths}
        found.append(set(paths))
    return found


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arriving, "_LOOK", 0)


def test_what_is_there_already_is_one_portion() -> None:
    files = Files()
    for transfer in files.transfers.values():
        transfer.complete = True
    assert portions(files, *NAMES) == [set(NAMES)]


def test_enough_is_taken_while_others_come() -> None:
    files = Files(size=arriving.ENOUGH)
    order = list(NAMES)

    def beat() -> None:
        files.transfers[order.pop(0)].complete = True

    assert portions(files, *NAMES, beat=beat) == [{"a"}, {"b"}, {"c"}]


def test_little_waits_for_more_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files()
    files.transfers["a"].complete = True
    now = [0.0]
    beats = []

    def beat() -> None:
        beats.append(now[0])
        now[0] += arriving.PATIENCE / 4
        if len(beats) > 6:
            files.transfers["b"].complete = files.transfers["c"].complete = True

    monkeypatch.setattr(arriving.time, "monotonic", lambda: now[0])
    assert portions(files, *NAMES, beat=beat) == [{"a"}, {"b", "c"}]
    assert sum(at < arriving.PATIENCE for at in beats) == 4


def test_a_file_that_does_not_come_ends_it() -> None:
    files = Files()
    files.transfers["b"].error = FetchError("gone")
    with pytest.raises(FetchError, match="gone"):
        portions(files, *NAMES)


def test_a_beat_that_raises_ends_the_wait() -> None:
    def beat() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        portions(Files(), *NAMES, beat=beat)


def test_a_shelf_has_each_file_under_its_own_name(tmp_path: Path) -> None:
    files: Any = Files()
    for transfer in files.transfers.values():
        transfer.complete = True
    shelf = arriving.shelf(tmp_path / "shelf", wanted(*NAMES), files)
    assert {link.name: str(link.readlink()) for link in shelf.iterdir()} == {
        name: f"/store/{name}" for name in NAMES
    }
