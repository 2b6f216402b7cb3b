"""Pages that are asked for before the resolver wants them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from index_fakes import PUBLIC, Fetcher, Session, Store
from test_index_views import NVIDIA, STACK

from envcheck.exit_codes import CouldNotLook
from envcheck.install.index import early
from envcheck.install.index.routes import Routes
from envcheck.install.index.views import OpenIndex
from envcheck.install.request import Request

BASE = "https://public.example/simple"
LINK = (f'<a href="six-1-py3-none-any.whl#sha256={"ab" * 32}">six</a>'.encode(), "text/html")
UPSTREAM = msgspec.structs.replace(STACK, name="tensorflow", distribution="tensorflow", indexes=[])


def opened(session: Session, store: Store, stack: Any = UPSTREAM) -> OpenIndex:
    fetcher: Any = Fetcher(session, store)
    return OpenIndex(Routes(stack, Request(), PUBLIC), session, store, stack, fetcher)  # type: ignore[arg-type]


def begun(indexes: OpenIndex, store: Any, stack: Any = UPSTREAM) -> None:
    """To its end."""
    before = set(threading.enumerate())
    early.begin(indexes, store, stack)
    for thread in set(threading.enumerate()) - before:
        thread.join()


def asked(session: Session) -> list[str]:
    return sorted(url for url, _ in session.asked)


def test_the_stack_and_pip_are_asked_for(tmp_path: Path) -> None:
    session, store = Session({f"{BASE}/tensorflow/": LINK}), Store(tmp_path)
    begun(opened(session, store), store)
    assert asked(session) == [f"{BASE}/pip/", f"{BASE}/tensorflow/"]


def test_and_what_the_resolver_wanted_the_last_time(tmp_path: Path) -> None:
    store: Any = Store(tmp_path)
    first = opened(Session({f"{BASE}/six/": LINK, f"{BASE}/pip/": LINK}), store)
    first.project("six")
    first.project("gone")
    begun(first, store)
    early.remember(first, store, UPSTREAM)
    session = Session({})
    begun(opened(session, store), store)
    assert asked(session) == [f"{BASE}/{name}/" for name in ("pip", "six", "tensorflow")]
    other = Session({})
    stack = msgspec.structs.replace(UPSTREAM, name="other")
    begun(opened(other, store, stack), store, stack)
    assert f"{BASE}/six/" not in asked(other)


def test_what_nobody_wanted_is_forgotten(tmp_path: Path) -> None:
    store: Any = Store(tmp_path)
    pages = {f"{BASE}/six/": LINK, f"{BASE}/numpy/": LINK}
    first = opened(Session(pages), store)
    first.project("six")
    first.project("numpy")
    early.remember(first, store, UPSTREAM)
    second = opened(Session(pages), store)
    begun(second, store)
    second.project("six")
    early.remember(second, store, UPSTREAM)
    third = Session({})
    begun(opened(third, store), store)
    assert f"{BASE}/six/" in asked(third) and f"{BASE}/numpy/" not in asked(third)


def test_a_page_is_asked_for_once_and_its_error_waits(tmp_path: Path) -> None:
    session, store = Session({f"{BASE}/tensorflow/": 503}), Store(tmp_path)
    indexes = opened(session, store)
    begun(indexes, store)
    with pytest.raises(CouldNotLook):
        indexes.project("tensorflow")
    assert asked(session).count(f"{BASE}/tensorflow/") == 1


def test_an_index_of_the_stack_s_own_is_left_alone(tmp_path: Path) -> None:
    session, store = Session({}), Store(tmp_path)
    stack = msgspec.structs.replace(STACK, distribution="nvidia-tensorflow")
    begun(opened(session, store, stack), store, stack)
    assert asked(session) == [f"{BASE}/pip/"]
    assert not [url for url in asked(session) if url.startswith(NVIDIA)]
