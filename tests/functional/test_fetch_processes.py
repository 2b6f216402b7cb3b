"""Fetching across processes: killed at any time, side by side, on a disk that is full, without locks."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bad_server import BadServer, Way
from cli import PYTHON, environment
from fetching import wait_until
from processes import PATIENCE
from processes import wait_for as wait_for_state

from envcheck.install.store.store import Store

SIZE = 8_000_000
DATA = random.Random(6).randbytes(SIZE)
SHA = hashlib.sha256(DATA).hexdigest()
SPEED = 8_000_000  # bytes per second: a file takes a second

# Fetches one file, and says how it went.
CHILD = """
import fcntl, json, sys
from pathlib import Path
from envcheck.install.network.retries import retry_policy
from envcheck.install.network.session import Session
from envcheck.install.lockfile import LockedFile
from envcheck.install.store.errors import FetchError
from envcheck.install.store.fetch import Fetcher
from envcheck.install.store.store import Store

root, url, sha256, mode = sys.argv[1:]
if mode == "without locks":
    def flock(*arguments):
        raise OSError(37, "No locks available")
    fcntl.flock = flock
said = {"error": ""}
store = Store(Path(root))
quick = retry_policy(first=0.01)
with Session() as session, Fetcher(store, session, retries=quick) as fetcher:
    fetcher.want(LockedFile(name="w.whl", url=url, sha256=sha256, size=None))
    try:
        fetcher.wait()
    except FetchError as error:
        said["error"] = error.sentence
    said |= {"fetched": fetcher.fetched_bytes, "resumed": fetcher.resumed_bytes}
print(json.dumps(said))
"""


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as running:
        running.file("/w.whl", DATA)
        yield running


@contextmanager
def child(store: Store, server: BadServer, mode: str = "") -> Iterator[subprocess.Popen[bytes]]:
    arguments = [PYTHON, "-c", CHILD, store.root, server.url + "/w.whl", SHA, mode]
    running = subprocess.Popen(
        list(map(str, arguments)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def result(running: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err.decode()
    said: dict[str, Any] = json.loads(out)
    return said


def wait_for(store: Store, size: int) -> None:
    """Until so many bytes are in partial files."""
    assert wait_for_state(lambda: sum(e.size for e in store.entries() if not e.complete) >= size), (
        "the download does not get on"
    )


def whole(store: Store) -> bool:
    return store.has(SHA) and store.path(SHA).read_bytes() == DATA


def test_killed_again_and_again_nothing_comes_twice(server: BadServer, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    server.behave("/w.whl", Way(rate=SPEED, times=None))
    there: list[int] = []
    for part in (1, 3, 5):
        with child(store, server) as running:
            wait_for(store, part * 1_000_000)
            running.kill()
            running.wait()
        there.append(store.partial(SHA).stat().st_size)
        assert store.partial(SHA).read_bytes() == DATA[: there[-1]]
    with child(store, server) as running:
        said = result(running)
    assert said["error"] == "" and whole(store)
    assert said["resumed"] == there[-1] and said["fetched"] == SIZE - there[-1]
    starts = [int(seen.range.removeprefix("bytes=").rstrip("-") or 0) for seen in server.seen()]
    assert starts == [0, *there]


def test_two_processes_fetch_a_file_once(server: BadServer, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    server.behave("/w.whl", Way(rate=SPEED, times=None))
    with child(store, server) as first:
        wait_for(store, 1_000_000)
        with child(store, server) as second:
            said = [result(first), result(second)]
    assert [one["error"] for one in said] == ["", ""]
    assert [one["fetched"] for one in said] == [SIZE, 0]
    assert len(server.seen()) == 1 and whole(store)


def test_the_second_takes_over_when_the_first_dies(server: BadServer, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    server.behave("/w.whl", Way(rate=SPEED, times=None))
    with child(store, server) as first:
        wait_for(store, 1_000_000)
        with child(store, server) as second:
            wait_for(store, 4_000_000)
            first.kill()
            first.wait()
            said = result(second)
    assert said["error"] == "" and whole(store)
    assert said["fetched"] + said["resumed"] == SIZE and said["resumed"] >= 1_000_000


def test_an_interrupt_ends_it_and_keeps_what_came(server: BadServer, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    server.behave("/w.whl", Way(stall_after=2_000_000, times=None))
    with child(store, server) as running:
        wait_for(store, 1_700_000)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=PATIENCE)  # and not the 30 s of silence
    assert err.rstrip().endswith(b"KeyboardInterrupt")
    assert store.partial(SHA).stat().st_size >= 1_700_000


def test_without_locks_nobody_spoils_anothers_file(server: BadServer, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    gate = threading.Event()
    server.behave("/w.whl", Way(before=gate, times=None))
    with (
        child(store, server, "without locks") as first,
        child(store, server, "without locks") as second,
    ):
        wait_until(lambda: len(server.seen()) == 2)
        gate.set()
        said = [result(first), result(second)]
    assert [one["error"] for one in said] == ["", ""] and whole(store)
    assert [one["fetched"] for one in said] == [SIZE, SIZE]
    assert not list((store.root / "partial").iterdir())


def test_a_disk_that_is_full(server: BadServer, tmp_path: Path) -> None:
    """For real, on a small tmpfs in a namespace of the child's own."""
    inside = (
        f'mount -t tmpfs -o size=4m none "$1" && "$0" -c "$2" "$1/store" "$3" {SHA} "" && '
        'ls -l "$1/store/partial"'
    )
    arguments = [PYTHON, str(tmp_path), CHILD, server.url + "/w.whl"]
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", inside, *arguments],
        capture_output=True,
        env=environment(),
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode and b"{" not in done.stdout:
        pytest.skip(f"no mount namespace here: {done.stderr.decode()[:200]}")
    first, _, listing = done.stdout.decode().partition("\n")
    sentence = json.loads(first)["error"]
    assert "does not fit into" in sentence and "the disk is full" in sentence
    missing = int(sentence.split(": ")[-1].split(" MiB")[0])
    assert 4 <= missing <= 5  # of the 8 MB, 4 MiB are there
    assert SHA in listing and int(listing.split()[6]) > 3_000_000
