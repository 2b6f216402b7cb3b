"""Layers in the store are removed by the last who needs them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from envcheck.install.images import layers
from envcheck.install.store import locking
from envcheck.install.store.store import Store

SHA256 = hashlib.sha256(b"layer").hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    path = made.path(SHA256)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"layer")
    return made


def test_what_another_is_at_work_with_stays_until_the_last_is_done(store: Store) -> None:
    with layers.in_use(store) as last:
        with layers.in_use(store) as first:
            first([SHA256])
            assert store.has(SHA256)
        last([SHA256])
    assert not store.has(SHA256)


def test_without_locks_they_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> locking.SharedLock:
        raise locking.NoLocks

    monkeypatch.setattr(locking, "share", refused)
    with layers.in_use(store) as remove:
        remove([SHA256])
    assert not store.has(SHA256)
