"""A wheel of random bytes, and a Fetcher that is quick to try again, for the tests of fetching."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bad_server import BadServer
from processes import wait_for

from envcheck.install.lockfile import LockedFile
from envcheck.install.network.retries import retry_policy
from envcheck.install.network.session import Session
from envcheck.install.store.fetch import Fetcher
from envcheck.install.store.store import Store

SIZE = 3_000_000
DATA = random.Random(4).randbytes(SIZE)
SHA = hashlib.sha256(DATA).hexdigest()
WRONG = random.Random(5).randbytes(SIZE)
QUICK = retry_policy(attempts=4, slow=4, first=0.01)


@contextmanager
def fetcher(store: Store, at_once: int = 8, silence: float = 30.0) -> Iterator[Fetcher]:
    with (
        Session() as session,
        Fetcher(store, session, at_once, silence=silence, retries=QUICK) as running,
    ):
        yield running


def wheel(
    server: BadServer, path: str = "/w.whl", data: bytes = DATA, known: bool = True
) -> LockedFile:
    return LockedFile(
        name=path[1:],
        url=server.file(path, data),
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data) if known else None,
    )


def fetched(store: Store, file: LockedFile, silence: float = 30.0) -> Fetcher:
    with fetcher(store, silence=silence) as running:
        running.want(file)
        running.wait()
    assert store.path(file.sha256).read_bytes() == DATA
    assert not list((store.root / "partial").iterdir())
    return running


def wait_until(reached: Callable[[], bool]) -> None:
    assert wait_for(reached)
