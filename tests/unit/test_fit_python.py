"""Which interpreter a release gets, which wheels that takes, and how much room there is."""

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
from envcheck.install.fit.fit import fit
from envcheck.install.fit.models import Candidate
from envcheck.install.pythons.interpreter import Interpreter
from envcheck.install.request import Request


def candidate(
    release: str, found: list[Interpreter], obtainable: tuple[str, ...] = (), **wish: Any
) -> Candidate:
    stack = m.tensorflow() if release.startswith("2.") else m.nvidia_tf1()
    return m.one(fit(stack, m.machine(), found, obtainable, Request(**wish)), release)


def test_the_newest_python_with_a_wheel_is_taken_of_those_that_are_there() -> None:
    found = [m.interpreter(version) for version in ("3.8.18", "3.14.0", "3.10.1", "3.9.2")]
    taken = candidate("2.20.0", found, ("3.13",)).interpreter
    assert taken is not None and taken.version == "3.10.1"


def test_a_python_that_is_not_there_is_got_where_uv_has_it() -> None:
    got = candidate("23.03", [m.interpreter("3.11.7")], ("3.13", "3.8"))
    assert got.fits and got.python_to_get == "3.8" and got.interpreter is None
    assert "No Python 3.8 is installed: uv downloads it." in got.notes
    offline = candidate("23.03", [m.interpreter("3.11.7")], ("3.8",), offline="/bundle")
    assert m.kinds(offline) == ["python"]


def test_what_is_there_is_told_where_none_fits() -> None:
    refused = candidate("20.10", [m.interpreter("3.12.1"), m.interpreter("3.9.9")], ("3.8",))
    assert m.sentence(refused, "python") == "needs Python 3.6, and this machine has 3.9 and 3.12"
    assert m.sentence(candidate("20.10", []), "python") == (
        "needs Python 3.6, and this machine has none"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"implementation": "PyPy"}, "/usr/bin/python3.11 is PyPy"),
        ({"free_threaded": True}, "/usr/bin/python3.11 is free-threaded"),
        ({"architecture": "i686"}, "/usr/bin/python3.11 is built for i686"),
        ({"libc": "musl"}, "/usr/bin/python3.11 is built for musl"),
        ({"version": "3.11.0rc2"}, "/usr/bin/python3.11 is the pre-release 3.11.0rc2"),
    ],
)
def test_an_interpreter_that_takes_no_such_wheel(changes: dict[str, Any], words: str) -> None:
    refused = candidate("2.20.0", [m.interpreter(**changes)])
    assert m.sentence(refused, "python").endswith(words)


def test_python_narrows_it() -> None:
    found = [m.interpreter("3.12.1"), m.interpreter("3.10.4")]
    taken = candidate("2.20.0", found, python="3.10").interpreter
    assert taken is not None and taken.version == "3.10.4"
    assert candidate("2.20.0", found, ("3.13",), python="3.13").python_to_get == "3.13"
    exact = candidate("2.20.0", found, ("3.13",), python="3.13.1")
    assert m.sentence(exact, "python").endswith("and --python 3.13.1 is not here")
    wrong = candidate("23.03", found, ("3.8",), python="3.10")
    assert m.sentence(wrong, "python") == "needs Python 3.8, and --python 3.10 is 3.10.4"


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
