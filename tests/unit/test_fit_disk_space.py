"""How much room there is, here and on the machine of a Snapshot."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fit_machines as m
import pytest
import whole

from envcheck.install.fit import disk_space
from envcheck.install.fit.disk_space import DiskSpace


def file_system(**changes: Any) -> Any:
    values = {
        "f_bavail": 512,
        "f_frsize": 1024 * 1024,
        "f_blocks": 1000,
        "f_flag": 0,
    }
    return lambda _path: SimpleNamespace(**{**values, **changes})


def test_a_path_that_is_not_there_yet_has_its_parent_s_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(os, "statvfs", lambda path: asked.append(path) or file_system()(path))
    found = disk_space.space_at(tmp_path / "envs" / "tensorflow")
    assert asked == [tmp_path]
    assert found == DiskSpace(
        path=str(tmp_path / "envs" / "tensorflow"),
        device=tmp_path.stat().st_dev,
        free_mib=512,
        noexec=False,
        read_only=False,
        writable=True,
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"f_flag": os.ST_NOEXEC}, {"noexec": True, "read_only": False}),
        ({"f_flag": os.ST_RDONLY}, {"noexec": False, "read_only": True}),
        ({"f_blocks": 0, "f_bavail": 0}, {"free_mib": None}),
    ],
)
def test_what_the_file_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: Any, expected: dict[str, Any]
) -> None:
    monkeypatch.setattr(os, "statvfs", file_system(**facts))
    found = disk_space.space_at(tmp_path)
    assert {name: getattr(found, name) for name in expected} == expected


def test_another_machine_s_room_comes_from_its_snapshot() -> None:
    disk = whole.disk("/home", "environments", free_mib=77, noexec=True, writable=whole.ABSENT)
    found = disk_space.space_of_snapshot(m.machine(disks=[disk]))
    assert found is not None
    assert (found.path, found.free_mib, found.noexec, found.writable) == ("/home", 77, True, True)
    assert disk_space.space_of_snapshot(m.machine(disks=[])) is None
