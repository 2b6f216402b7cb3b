"""What is checked of a lock that somebody brought, and what the next plan's rate rests on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from planned import GAST, MIB, NVIDIA, PUBLIC, interpreter, lock, package, stack

from envcheck.exit_codes import Cannot, CouldNotLook, UsageError
from envcheck.install.index.simple import ProjectFile
from envcheck.install.lockfile import Lockfile
from envcheck.install.store import fetch_rate
from envcheck.install.store.progress import Fetching
from envcheck.install.wheels.checking import check_fits, located, public_of

MIRROR = "https://user:secret@mirror.example/"


class Pages:
    """An index that has a lock's files at another address, and some of them changed."""

    def __init__(self, of: Lockfile, **sha256: str) -> None:
        self._files = {
            p.name: ProjectFile(
                filename=p.file.name,
                url=f"{MIRROR}{p.file.name}#sha256=x",
                sha256=sha256.get(p.name, p.file.sha256),
                size=7,
            )
            for p in [*of.packages, *of.building]
            if sha256.get(p.name) != "gone"
        }

    def project(self, name: str) -> list[ProjectFile] | None:
        return [self._files[name]] if name in self._files else None

    def explain(self, name: str) -> str:
        return f"the index has no {name}"


def test_files_are_taken_from_here_and_nothing_else_changes() -> None:
    brought = lock(building=[GAST])
    there = located(brought, Pages(brought))
    assert there.packages[0].file.url == f"https://mirror.example/{brought.packages[0].file.name}"
    assert [p.file.sha256 for p in there.packages] == [p.file.sha256 for p in brought.packages]
    assert [p.index for p in there.packages] == [p.index for p in brought.packages]
    assert [p.name for p in there.building] == ["gast"]


def test_a_size_that_the_lock_lacks_is_the_indexs() -> None:
    brought = lock(package("a", "1", None), package("b", "1", 3))
    assert [p.file.size for p in located(brought, Pages(brought)).packages] == [7, 3]


def test_another_hash_is_shown_beside_the_locks() -> None:
    brought = lock()
    with pytest.raises(UsageError) as error:
        located(brought, Pages(brought, numpy="ab" * 32))
    (numpy,) = (p for p in brought.packages if p.name == "numpy")
    assert numpy.file.sha256 in str(error.value) and "ab" * 32 in str(error.value)


def test_several_that_differ_are_counted() -> None:
    brought = lock()
    with pytest.raises(UsageError, match="and 1 more"):
        located(brought, Pages(brought, numpy="ab" * 32, pip="cd" * 32))


def test_a_file_that_is_gone() -> None:
    brought = lock()
    with pytest.raises(CouldNotLook, match="the index has no numpy") as error:
        located(brought, Pages(brought, numpy="gone"))
    assert PUBLIC in error.value.hint


def test_a_lock_for_another_machine() -> None:
    brought = lock(
        package("a", "1", 1), package("b", "1", 1, end="-cp38-cp38-manylinux_2_28_x86_64.whl")
    )
    here = msgspec.structs.replace(
        interpreter(), tags=["cp38-cp38-manylinux_2_17_x86_64", "py3-none-any"]
    )
    newer = msgspec.structs.replace(here, tags=["cp38-cp38-manylinux_2_28_x86_64", *here.tags])
    check_fits(brought, newer, "bundle")
    with pytest.raises(Cannot, match=r"b-1-cp38.*manylinux_2_17_x86_64\) cannot take"):
        check_fits(brought, here, "bundle")
    with pytest.raises(Cannot, match=r"is for Python 3.8, and /usr/bin/python3.8 is 3.11.7"):
        check_fits(brought, msgspec.structs.replace(here, version="3.11.7"), "bundle")
    with pytest.raises(Cannot, match="is for x86_64, and this machine's Python is aarch64"):
        check_fits(brought, msgspec.structs.replace(here, architecture="aarch64"), "bundle")


def test_the_public_index_is_what_no_other_claims() -> None:
    assert public_of(stack(), lock()) == PUBLIC
    assert public_of(stack(), lock(package("nvidia-cudnn", "1", MIB, NVIDIA))) == ""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    now = [100.0]
    monkeypatch.setattr("envcheck.install.store.fetch_rate.time.monotonic", lambda: now[0])
    return now


def told(fetched: int, files: int = 1) -> Fetching:
    return Fetching(files=files, files_done=0, total=None, done=fetched, fetched=fetched)


def test_the_rate_is_that_of_the_time_in_which_bytes_came(clock: list[float]) -> None:
    shown: list[Fetching] = []
    meter = fetch_rate.Meter(shown.append)
    for moment, fetched in ((100, 0), (130, 1), (140, 50_000_000), (170, 50_000_000)):
        clock[0] = float(moment)
        meter(told(fetched))
    meter.keep()
    assert fetch_rate.read() == 5e6
    assert len(shown) == 4
    meter(told(0, files=0))
    assert len(shown) == 4, "nothing is fetched, and nothing shown"


def test_little_says_nothing_of_a_rate(clock: list[float]) -> None:
    fetch_rate.keep(1000, 10.0)
    fetch_rate.keep(10**9, 0.1)
    assert fetch_rate.read() == 0.0
