"""The store's own files: what is there, what is whole, what is removed."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from envcheck.install.store import errors, partial
from envcheck.install.store import store as store_file
from envcheck.install.store.errors import FetchError
from envcheck.install.store.partial import Partial
from envcheck.install.store.store import NoLocks, Store, hash_of, take

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
    assert not store.has(SHA) and store.size(SHA) is None
    assert list(store.entries()) == [] and store.remove(SHA) == 0
    assert not store.root.exists()


def test_what_an_earlier_boot_wrote_is_verified_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    read: list[Path] = []
    monkeypatch.setattr(store_file, "hash_of", lambda path: read.append(path) or hash_of(path))
    assert store.has(SHA) and store.has(SHA) and len(read) == 1
    os.utime(store.root / "used" / SHA, (1e9, 1e9))  # noted before the last boot
    assert store.has(SHA) and store.has(SHA) and len(read) == 2


@pytest.mark.parametrize("earlier", [True, False])
def test_what_was_damaged_is_found_and_removed(store: Store, earlier: bool) -> None:
    """Also where its size and its time of writing are those of the whole file."""
    path = put(store)
    assert store.has(SHA)
    before = path.stat()
    path.write_bytes(b"x" * len(DATA))
    if earlier:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not store.has(SHA) and not path.exists()


def test_being_asked_for_touches_nothing(store: Store) -> None:
    path = put(store)
    os.utime(path, (1e9, 1e9))
    before = path.stat()
    assert store.has(SHA)
    # uv takes a wheel for another one when its file's times have changed.
    assert (path.stat().st_mtime_ns, path.stat().st_ctime_ns) == (
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


def test_a_store_that_cannot_be_written_to_is_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    assert store.has(SHA) and store.size(SHA) == len(DATA)


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
    found = {(e.sha256, e.size, e.complete) for e in store.entries()}
    assert found == {(SHA, len(DATA), True), (OTHER, 5, False), (OTHER, 3, False)}
    assert store.remove(SHA) >= len(DATA)
    assert store.remove(OTHER) == 8
    assert list(store.entries()) == []


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


def test_what_is_being_fetched_is_not_removed(store: Store) -> None:
    path = store.partial(SHA)
    for made in (path, store.lock_path(SHA)):
        made.parent.mkdir(parents=True)
    path.write_bytes(b"12345")
    held = take(store.lock_path(SHA))
    assert held is not None and take(store.lock_path(SHA)) is None
    assert take(store.lock_path(SHA), 0.1) is None
    assert store.remove(SHA) == 0
    held.release()
    assert store.remove(SHA) == 5
    assert not list(store.lock_path(SHA).parent.iterdir())


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks_is_told_apart(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    store.lock_path(SHA).parent.mkdir(parents=True)
    with pytest.raises(NoLocks):
        take(store.lock_path(SHA))
    assert partial.private(store.partial(SHA)).name.startswith(f"{SHA}.")


def test_a_partial_goes_on_where_it_was(store: Store) -> None:
    path = store.partial(SHA)
    first = Partial(path)
    first.append(DATA[:5000])
    first.close()
    second = Partial(path)
    second.read_again()
    assert second.size == 5000
    second.append(DATA[5000:])
    assert (second.size, second.hexdigest()) == (len(DATA), SHA)
    second.keep(store.path(SHA))
    second.close()
    assert store.has(SHA) and not path.exists()


def test_an_empty_partial_is_not_left(store: Store) -> None:
    grown = Partial(store.partial(SHA))
    grown.append(DATA)
    grown.restart()
    assert grown.size == 0 and not store.partial(SHA).stat().st_size
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
