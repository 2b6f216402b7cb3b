"""A transfer as its readers see it, and the parts of a file that answers hold."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envcheck.install.lockfile import LockedFile
from envcheck.install.network.errors import HttpError
from envcheck.install.store import parts
from envcheck.install.store.errors import FetchError
from envcheck.install.store.store import Store
from envcheck.install.store.transfer import HELD_BACK, Transfer

SHA = "a" * 64


@pytest.fixture
def transfer(tmp_path: Path) -> Transfer:
    file = LockedFile(name="w.whl", url="https://index.example/w.whl", sha256=SHA)
    return Transfer(file, Store(tmp_path))


def test_the_end_is_held_back_until_it_is_verified(transfer: Transfer, tmp_path: Path) -> None:
    assert transfer.total is None and transfer.available() == 0
    transfer.begun(tmp_path / "grown", 0)
    transfer.grown(HELD_BACK)
    assert transfer.wait_beyond(0, 0.0) == 0
    transfer.grown(HELD_BACK + 5)
    assert transfer.wait_beyond(0, 9.0) == 5
    assert not transfer.complete
    transfer.finished(HELD_BACK + 5)
    assert transfer.complete and transfer.total == HELD_BACK + 5
    assert transfer.wait_beyond(HELD_BACK + 5, 9.0) == HELD_BACK + 5


def test_a_failure_reaches_who_waits_for_more(transfer: Transfer, tmp_path: Path) -> None:
    transfer.begun(tmp_path / "grown", HELD_BACK + 5)
    transfer.failed(FetchError("no more of it"))
    assert transfer.wait_beyond(0, 9.0) == 5  # what is there may be read
    with pytest.raises(FetchError, match="no more"):
        transfer.wait_beyond(5, 9.0)


def test_what_never_began_is_not_opened(transfer: Transfer) -> None:
    transfer.failed(FetchError("refused"))
    with pytest.raises(FetchError, match="refused"):
        transfer.open()


def test_a_file_that_lost_its_name_waits_for_the_reason(transfer: Transfer, tmp_path: Path) -> None:
    transfer.begun(tmp_path / "discarded", 0)  # and its thread has not come to say why, yet
    late = threading.Timer(0.2, transfer.failed, [FetchError("gone from its index")])
    late.start()
    with pytest.raises(FetchError, match="gone from its index"):
        transfer.open()
    late.join()


def test_what_was_read_does_not_begin_again(transfer: Transfer, tmp_path: Path) -> None:
    (tmp_path / "grown").write_bytes(b"x" * 9)
    transfer.begun(tmp_path / "grown", 9)
    assert transfer.restarted() and transfer.size == 0
    with transfer.open() as content:
        assert content.read() == b"x" * 9
    assert not transfer.restarted()


def test_an_open_file_survives_its_renaming(transfer: Transfer, tmp_path: Path) -> None:
    store = Store(tmp_path)
    grown, whole = tmp_path / "grown", store.path(SHA)
    grown.write_bytes(b"first")
    transfer.begun(grown, 5)
    with transfer.open() as early:
        whole.parent.mkdir(parents=True)
        grown.rename(whole)
        assert early.read() == b"first"
    with transfer.open() as late:  # the new name is there before anybody was told
        assert late.read() == b"first"


def answer(status: int, **headers: str) -> Any:
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return SimpleNamespace(status_code=status, headers=named, url="https://u:p@index.example/w")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (answer(200, content_length="100"), (30, 100)),
        (answer(200), (30, None)),
        (answer(206, content_range="bytes 30-99/100"), (0, 100)),
        (answer(206, content_range="bytes 10-99/*"), (20, None)),
    ],
)
def test_the_place_of_a_part(response: Any, expected: tuple[int, int | None]) -> None:
    assert parts.place(response, 30) == expected


@pytest.mark.parametrize(
    "response",
    [answer(206, content_range="bytes 31-99/100"), answer(206), answer(206, content_range="x")],
)
def test_a_part_that_leaves_a_gap_is_not_taken(response: Any) -> None:
    with pytest.raises(HttpError, match="sends another part") as caught:
        parts.place(response, 30)
    assert caught.value.again


def test_the_size_in_a_refused_range() -> None:
    assert parts.size_of_all({"Content-Range": "bytes */100"}) == 100
    assert parts.size_of_all({}) is None
