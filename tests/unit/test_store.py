"""The store's own files: what is there, what is whole, what is removed."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from envcheck.install.store import errors, locking, partial
from envcheck.install.store.errors import FetchError
from envcheck.install.store.partial import Partial
from envcheck.install.store.store import Store, hash_of

DATA = b"a wheel, more or less" * 1000
SHA = hashlib.sha256(DATA).hexdigest()
OTHER = "0" * 64


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def put(store: Store, data: bytes = DATA) -> Path:
    path = store.path(hashlib.sha256(data).hexdigest())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_an_empty_store_makes_nothing(store: Store) -> None:
    assert not store.has(SHA) and store.metadata(SHA) is None
    assert list(store.entries()) == [] and store.remove(SHA) == 0
    assert not store.root.exists()


def test_adopting_verifies_first(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "w.whl"
    file.write_bytes(DATA)
    with pytest.raises(FetchError) as caught:
        store.adopt(file, OTHER)
    assert SHA in str(caught.value) and OTHER in str(caught.value)
    assert not store.has(OTHER)
    path = store.adopt(file, SHA)
    assert path == store.path(SHA) and store.has(SHA)
    file.unlink()
    with store.open(SHA) as content:
        assert content.read() == DATA
    assert [p.name for p in path.parent.iterdir()] == [SHA]  # nothing else is left there


def test_adopting_copies_where_no_link_is_possible(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    file = tmp_path / "w.whl"
    file.write_bytes(DATA)
    assert store.adopt(file, SHA).stat().st_ino != file.stat().st_ino
    assert hash_of(store.path(SHA)) == SHA


def test_what_an_earlier_boot_wrote_is_verified_once(store: Store) -> None:
    whole, broken = put(store), put(store, DATA + b"!")
    broken.write_bytes(DATA)  # as a crash of the machine leaves it
    for path in (whole, broken):
        os.utime(path, (0, 0))
    assert not store.has(broken.name) and not broken.exists()
    assert store.has(SHA) and next(store.entries()).used_at > 1e9
    whole.write_bytes(b"x" * len(DATA))  # within one boot nothing is read again
    assert store.has(SHA)


@pytest.mark.parametrize("name", ["", "abc", "../" * 21 + "x", SHA.upper(), SHA + "\n"])
def test_only_a_sha256_becomes_a_path(store: Store, name: str) -> None:
    with pytest.raises(FetchError, match="not a sha256"):
        store.path(name)


def test_entries_and_removal(store: Store) -> None:
    put(store)
    cut = store.partial(OTHER)
    cut.parent.mkdir(parents=True)
    cut.write_bytes(b"12345")
    (cut.parent / f"{OTHER}.host.1").write_bytes(b"123")
    (store.root / "files" / ".from-bundle-x").write_bytes(b"")
    os.utime(store.path(SHA), (1e9, 1e9))
    found = {(e.sha256, e.size, e.complete) for e in store.entries()}
    assert found == {(SHA, len(DATA), True), (OTHER, 5, False), (OTHER, 3, False)}
    assert [e.used_at for e in store.entries() if e.complete] == [1e9]
    store.put_metadata(SHA, b"Metadata-Version: 2.1\n")
    assert store.remove(SHA) >= len(DATA) and store.metadata(SHA) is None
    assert store.remove(OTHER) == 8
    assert list(store.entries()) == []


def test_opening_counts_as_use(store: Store) -> None:
    path = put(store)
    os.utime(path, (1e9, 1e9))
    before = path.stat()
    store.open(SHA).close()
    assert next(store.entries()).used_at > 1e9
    # uv takes a wheel for another one when its file's times have changed.
    assert (path.stat().st_mtime_ns, path.stat().st_ctime_ns) == (
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


def test_a_file_has_its_own_name_for_installers(store: Store) -> None:
    path = put(store)
    before = path.stat().st_ctime_ns
    named = store.named(SHA, "alpha-1.0-py3-none-any.whl")
    assert named.read_bytes() == DATA and named.name == "alpha-1.0-py3-none-any.whl"
    assert store.named(SHA, named.name) == named and path.stat().st_ctime_ns == before
    store.remove(SHA)
    assert not named.is_symlink() and not list(store.entries())


@pytest.mark.parametrize("name", ["", "..", "../x.whl", "a/b.whl", "x\0.whl"])
def test_a_name_leads_nowhere_else(store: Store, name: str) -> None:
    put(store)
    with pytest.raises(FetchError, match="not a file name"):
        store.named(SHA, name)
    with pytest.raises(FetchError, match="No such file"):
        store.open(OTHER)


def test_what_is_being_fetched_is_not_removed(store: Store) -> None:
    path = store.partial(SHA)
    for made in (path, store.lock_path(SHA)):
        made.parent.mkdir(parents=True)
    path.write_bytes(b"12345")
    held = locking.take(store.lock_path(SHA))
    assert held is not None and locking.take(store.lock_path(SHA)) is None
    assert store.remove(SHA) == 0
    held.release()
    assert store.remove(SHA) == 5
    assert not list(store.lock_path(SHA).parent.iterdir())


def test_a_lock_that_was_removed_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process released it, and removed its name, between our opening and our locking."""
    path = tmp_path / "lock"
    flock = locking.fcntl.flock

    def late(descriptor: int, how: int) -> None:
        monkeypatch.undo()
        path.unlink()
        flock(descriptor, how)

    monkeypatch.setattr(locking.fcntl, "flock", late)
    held = locking.take(path)
    assert held is not None and path.exists()
    assert locking.take(path) is None


def test_metadata_is_kept_whole_or_not_at_all(store: Store) -> None:
    data = b"Metadata-Version: 2.1\nName: x\n\nlines\n"
    store.put_metadata(SHA, data)
    assert store.metadata(SHA) == data
    (kept,) = (store.root / "metadata").rglob(SHA)
    kept.write_bytes(kept.read_bytes()[:-1])
    assert store.metadata(SHA) is None


def test_a_partial_goes_on_where_it_was(store: Store) -> None:
    path = store.partial(SHA)
    first = Partial(path)
    first.append(DATA[:5000])
    first.close()
    second = Partial(path)
    assert second.there() == 5000 and second.size == 0
    second.read_again()
    second.append(DATA[5000:])
    assert (second.size, second.hexdigest()) == (len(DATA), SHA)
    second.keep(store.path(SHA))
    second.close()
    assert store.has(SHA) and not path.exists()


def test_an_empty_partial_is_not_left(store: Store) -> None:
    grown = Partial(store.partial(SHA))
    grown.append(DATA)
    grown.restart()
    assert grown.size == 0 and grown.there() == 0
    grown.close()
    assert not store.partial(SHA).exists()


def test_a_short_write_is_gone_on_with(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(partial.os, "write", lambda fd, data: write(fd, bytes(data)[:7000]))
    grown = Partial(store.partial(SHA))
    grown.append(DATA)
    monkeypatch.undo()
    assert store.partial(SHA).read_bytes() == DATA and grown.hexdigest() == SHA
    grown.close()


def test_without_locks_each_process_has_its_own_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locking.fcntl, "flock", refuse)
    store.lock_path(SHA).parent.mkdir(parents=True)
    with pytest.raises(locking.NoLocks):
        locking.take(store.lock_path(SHA))
    shared = store.partial(SHA)
    shared.parent.mkdir(parents=True)
    host = partial.socket.gethostname()
    living = shared.with_name(f"{SHA}.{host}.{os.getppid()}")
    dead = shared.with_name(f"{SHA}.{host}.{2**22 + 1}")
    living.write_bytes(b"theirs")
    dead.write_bytes(b"left")
    own = partial.private(shared)
    assert own.name == f"{SHA}.{host}.{os.getpid()}"
    assert own.read_bytes() == b"left" and living.read_bytes() == b"theirs"


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "quota"), (errno.EROFS, "Read-only")],
)
def test_errors_of_the_disk_say_what_and_where(number: int, said: str, tmp_path: Path) -> None:
    error = errors.of_disk(OSError(number, os.strerror(number)), tmp_path, "w.whl", 1 << 60)
    assert said in str(error) and str(tmp_path) in str(error) and "w.whl" in str(error)
    assert ("MiB more are needed" in str(error)) == (number != errno.EROFS)
    assert "XDG_CACHE_HOME" in error.hint and error.sentence == str(error)


def test_what_the_disk_lacks_is_reckoned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usage: Any = type("Usage", (), {"free": 3 << 20})
    monkeypatch.setattr(errors.shutil, "disk_usage", lambda _: usage)
    error = errors.of_disk(OSError(errno.ENOSPC, ""), tmp_path, "w.whl", (10 << 20) + 1)
    assert ": 8 MiB more" in str(error)
