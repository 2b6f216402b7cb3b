"""Files in portions as they arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envcheck.install.lockfile import LockedFile
from envcheck.install.store.errors import FetchError
from envcheck.install.wheels import installing

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


def portions(files: Any, *names: str) -> list[set[str]]:
    found = []
    for paths in installing.portions(wanted(*names), files):
        assert paths == {name: Path("/store") / name for name in paths}
        found.append(set(paths))
    return found


def test_what_is_there_already_is_one_portion() -> None:
    files = Files()
    for transfer in files.transfers.values():
        transfer.complete = True
    assert portions(files, *NAMES) == [set(NAMES)]


def test_enough_is_taken_while_others_come(monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(size=installing.ENOUGH)
    order = list(NAMES)

    def sleep(seconds: float) -> None:
        files.transfers[order.pop(0)].complete = True

    monkeypatch.setattr(installing.time, "sleep", sleep)
    assert portions(files, *NAMES) == [{"a"}, {"b"}, {"c"}]


def test_little_waits_for_more_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files()
    files.transfers["a"].complete = True
    now = [0.0]
    looks = []

    def sleep(seconds: float) -> None:
        looks.append(now[0])
        now[0] += installing.PATIENCE / 4
        if len(looks) > 6:
            files.transfers["b"].complete = files.transfers["c"].complete = True

    monkeypatch.setattr(installing.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(installing.time, "sleep", sleep)
    assert portions(files, *NAMES) == [{"a"}, {"b", "c"}]
    assert sum(at < installing.PATIENCE for at in looks) == 4


def test_a_file_that_does_not_come_ends_it() -> None:
    files = Files()
    files.transfers["b"].error = FetchError("gone")
    with pytest.raises(FetchError, match="gone"):
        portions(files, *NAMES)
