"""Fetching from a server that misbehaves: what comes is whole, comes once, or is refused in one sentence."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_server import CAPTIVE_PORTAL, BadServer, Way
from fetching import DATA, QUICK, SHA, SIZE, WRONG, fetched, fetcher, wheel

from envcheck.install.lockfile import LockedFile
from envcheck.install.store.errors import FetchError
from envcheck.install.store.store import Store

FOREVER = None


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        running.file("/w.whl", DATA)
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def refusal(store: Store, file: LockedFile) -> FetchError:
    with fetcher(store) as running:
        running.want(file)
        with pytest.raises(FetchError) as caught:
            running.wait()
    assert not store.has(file.sha256)
    assert "://" not in caught.value.sentence or file.url in caught.value.sentence
    return caught.value


def ranges(server: BadServer) -> list[str]:
    return [seen.range for seen in server.seen("/w.whl")]


@pytest.mark.parametrize("known", [True, False])
def test_a_file_comes_once_and_stays(server: BadServer, store: Store, known: bool) -> None:
    file = wheel(server, known=known)
    assert fetched(store, file).fetched_bytes == SIZE
    assert fetched(store, file).fetched_bytes == 0
    assert len(server.seen()) == 1
    assert server.seen()[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("reset", [True, False])
def test_a_server_that_always_cuts_does_not_win(
    server: BadServer, store: Store, known: bool, reset: bool
) -> None:
    """Seven cuts, more than the retries, since each came after progress."""
    server.behave("/w.whl", Way(cut_after=400_000, reset=reset, times=FOREVER))
    running = fetched(store, wheel(server, known=known))
    assert len(server.seen()) >= 8 > (QUICK.total or 0)
    if not reset:  # what an RST destroys in the kernel's buffers comes again
        assert running.fetched_bytes == SIZE


def test_cuts_without_progress_end(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(cut_after=1000, times=FOREVER))
    error = refusal(store, wheel(server))
    assert f"127.0.0.1:{server.port} cut the connection" in error.sentence
    assert ranges(server) == ["", "bytes=1000-", "bytes=2000-", "bytes=3000-"]


def test_silence_counts_as_a_cut(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(stall_after=1_000_000))
    running = fetched(store, wheel(server), silence=0.2)
    assert len(server.seen()) == 2 and ranges(server)[1].startswith("bytes=")
    assert running.fetched_bytes == SIZE


def test_a_server_that_only_stalls_is_named(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(stall_after=0, times=FOREVER))
    with fetcher(store, silence=0.1) as running:
        running.want(wheel(server))
        with pytest.raises(FetchError, match="does not answer any more"):
            running.wait()


def test_a_slow_server_is_not_a_silent_one(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(rate=6_000_000))
    fetched(store, wheel(server), silence=0.2)
    assert len(server.seen()) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_server_that_recovers(server: BadServer, store: Store, status: int) -> None:
    server.behave("/w.whl", Way(status=status, times=2))
    fetched(store, wheel(server))
    assert len(server.seen()) == 3


def test_retry_after_is_heeded(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(status=429, headers={"Retry-After": "1"}))
    fetched(store, wheel(server))
    first, second = server.seen()
    assert second.at - first.at >= 1


def test_an_endless_retry_after_is_refused(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(status=503, headers={"Retry-After": "86400"}, times=FOREVER))
    assert "answers 503 Service Unavailable" in refusal(store, wheel(server)).sentence
    assert len(server.seen()) == 1


@pytest.mark.parametrize(
    ("status", "said"), [(404, "404 Not Found"), (403, "403 Forbidden"), (410, "410 Gone")]
)
def test_a_final_answer_is_asked_for_once(
    server: BadServer, store: Store, status: int, said: str
) -> None:
    server.behave("/w.whl", Way(status=status, times=FOREVER))
    sentence = refusal(store, wheel(server)).sentence
    assert said in sentence and "w.whl could not be fetched" in sentence
    assert len(server.seen()) == 1


def test_wrong_bytes_come_once_more(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(wrong_at=100))
    fetched(store, wheel(server))
    assert ranges(server) == ["", ""]


def test_wrong_bytes_for_ever_show_both_hashes(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(content=WRONG, times=FOREVER))
    error = refusal(store, wheel(server))
    assert SHA in error.sentence and hashlib.sha256(WRONG).hexdigest() in error.sentence
    assert f"127.0.0.1:{server.port}" in error.sentence
    assert not list((store.root / "partial").iterdir())  # nor is it gone on with
    assert len(server.seen()) == 2


@pytest.mark.parametrize(
    "then",
    [
        Way(shifted=10),  # wrong bytes after the resume
        Way(status=416),
        Way(content=WRONG, etag='"other"'),  # the file was another one for a while
    ],
)
def test_a_resume_that_goes_wrong_begins_again(server: BadServer, store: Store, then: Way) -> None:
    server.behave("/w.whl", Way(cut_after=1_000_000), then)
    fetched(store, wheel(server))
    assert ranges(server)[:2] == ["", "bytes=1000000-"] and ranges(server)[-1] == ""


def test_a_server_that_always_answers_416_after_a_cut(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(cut_after=1_000_000), Way(status=416, times=FOREVER))
    assert "answers 416" in refusal(store, wheel(server)).sentence
    assert len(server.seen()) == 3


def test_ignored_ranges_cost_bytes_and_nothing_else(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(cut_after=1_000_000), Way(ranges=False))
    running = fetched(store, wheel(server))
    assert running.fetched_bytes == SIZE + 1_000_000


def test_parts_smaller_than_asked_for_are_put_together(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(cut_after=1_000_000), Way(at_most=700_000, times=FOREVER))
    assert fetched(store, wheel(server)).fetched_bytes == SIZE
    assert ranges(server) == ["", *(f"bytes={n}-" for n in (1_000_000, 1_700_000, 2_400_000))]


@pytest.mark.parametrize("way", [Way(declared=SIZE + 100), Way(length=False)])
def test_lengths_that_lie_or_are_missing(server: BadServer, store: Store, way: Way) -> None:
    server.behave("/w.whl", way)
    fetched(store, wheel(server, known=False))


def test_a_size_other_than_the_index_said_ends_it_early(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(content=WRONG + b"more", times=FOREVER))
    error = refusal(store, wheel(server))
    assert f"{SIZE + 4} bytes" in error.sentence and f"should have {SIZE}" in error.sentence
    assert len(server.seen()) == 1


def test_an_endless_file_is_not_followed_to_its_end(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(content=DATA * 20, length=False, times=FOREVER))
    with fetcher(store) as running:
        running.want(wheel(server))
        with pytest.raises(FetchError):
            running.wait()
    assert running.fetched_bytes < 3 * SIZE


def test_a_captive_proxy_is_recognised(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", CAPTIVE_PORTAL)
    error = refusal(store, wheel(server))
    assert "a web page (HTML) came" in error.sentence and "browser" in error.hint


def test_an_earlier_run_is_gone_on_with(server: BadServer, store: Store) -> None:
    server.behave("/w.whl", Way(cut_after=2_000_000), Way(status=404))
    error = refusal(store, wheel(server))
    assert "after 1 MiB of 2" in error.sentence and "downloads are kept" in error.hint
    running = fetched(store, wheel(server))
    assert (running.fetched_bytes, running.resumed_bytes) == (SIZE - 2_000_000, 2_000_000)
    assert ranges(server)[-1] == "bytes=2000000-"


def test_a_file_that_was_damaged_in_the_store_comes_again(server: BadServer, store: Store) -> None:
    file = wheel(server)
    fetched(store, file)
    before = store.path(SHA).stat()
    store.path(SHA).write_bytes(WRONG)
    os.utime(store.path(SHA), ns=(before.st_atime_ns, before.st_mtime_ns))
    assert fetched(store, file).fetched_bytes == SIZE


def test_a_whole_partial_needs_no_network(server: BadServer, store: Store) -> None:
    """Killed between the last byte and the renaming; without a known size a refused range tells it."""
    for known, requests in ((True, 0), (False, 1)):
        file = wheel(server, known=known)
        path = store.partial(SHA)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(DATA)
        assert fetched(store, file).fetched_bytes == 0
        assert len(server.seen()) == requests
        store.remove(SHA)


@pytest.mark.parametrize("left", [WRONG[:1_000_000], WRONG, DATA + b"more"])
def test_a_spoilt_partial_is_found_out(server: BadServer, store: Store, left: bytes) -> None:
    path = store.partial(SHA)
    path.parent.mkdir(parents=True)
    path.write_bytes(left)
    running = fetched(store, wheel(server))
    assert running.resumed_bytes == 0
