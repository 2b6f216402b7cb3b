"""Several files at once: what comes first, and how the fetching is ended."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_server import BadServer, Way
from fetching import DATA, SHA, fetched, fetcher, wait_until, wheel

from envcheck.install.store import partial
from envcheck.install.store.errors import FetchError
from envcheck.install.store.store import Store, take

FOREVER = None


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        running.file("/w.whl", DATA)
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_many_are_fetched_a_few_at_once_and_the_urgent_first(
    server: BadServer, store: Store
) -> None:
    gate = threading.Event()
    files = [wheel(server, f"/{n}.whl", bytes([n]) * (1000 + n)) for n in range(6)]
    for file in files:
        server.behave(f"/{file.name}", Way(before=gate))
    with fetcher(store, at_once=2) as running:
        running.want_all(files)
        wait_until(lambda: len(server.seen()) == 2)
        running.want(files[0], first=True)
        assert {seen.path for seen in server.seen()} == {"/5.whl", "/4.whl"}
        gate.set()
        running.wait()
        order = [seen.path for seen in server.seen()]
        assert order.index("/0.whl") <= 3 and sorted(order) == sorted(f"/{f.name}" for f in files)
        state = running.progress()
    assert (state.files, state.files_done) == (6, 6) and state.done == state.total == state.fetched


def test_closing_ends_it_promptly_and_keeps_what_came(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(stall_after=1_000_000, times=FOREVER))
    with fetcher(store) as running:
        transfer = running.want(wheel(server))
        wait_until(lambda: transfer.size > 900_000)  # from here on it waits for the network
        names = {t.name for t in running._threads}
    assert not names & {t.name for t in threading.enumerate()}
    for stopped in (transfer, running.want(wheel(server, "/other.whl", b"other"))):
        assert "was stopped" in str(stopped.error) and not stopped.complete
    assert store.partial(SHA).stat().st_size > 900_000
    assert take(store.lock_path(SHA)) is not None


def test_a_full_disk_says_what_is_missing(
    server: BadServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if os.fstat(descriptor).st_size > 1_000_000:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(partial.os, "write", full)
    with fetcher(store) as running:
        running.want(wheel(server))
        with pytest.raises(FetchError, match=r"does not fit .* full: \d+ MiB more") as caught:
            running.wait()
    assert str(store.root) in caught.value.sentence
    monkeypatch.undo()
    assert fetched(store, wheel(server)).resumed_bytes > 1_000_000


def test_a_store_that_cannot_be_written_to(server: BadServer, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    with fetcher(Store(tmp_path / "store")) as running:
        running.want(wheel(server))
        with pytest.raises(FetchError, match=r"w\.whl cannot be written to .*store"):
            running.wait()
