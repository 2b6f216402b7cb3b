"""The transaction's parts, without a process."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.exit_codes import NotPutBack, UsageError
from envcheck.install import places
from envcheck.install.request import Request
from envcheck.install.transaction import (
    current,
    existing,
    file_list,
    guard,
    record,
    recovery,
    removal,
    roots,
)
from envcheck.install.transaction.journal import Journal
from envcheck.install.transaction.layout import Root, Version
from envcheck.install.transaction.record import Health, Record
from envcheck.install.wheels import uv_cache

A, B, C = (f"{n}.0-py3.11-{n * 8}" for n in ("1", "2", "3"))


pytestmark = pytest.mark.usefixtures("scratch_home")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    made = Root(tmp_path / "root")
    guard.claim(made)
    return made


def noted(version: str, at: str = "2026-11-21T17:00:00Z", **changes: object) -> Record:
    whole = Record(
        schema=1,
        version=version,
        stack="tiny",
        release="1",
        title="Tiny",
        request=Request(stack="tiny"),
        inputs=record.inputs(Request(stack="tiny")),
        lock="1" * 64,
        versions={},
        python="3.11.7",
        interpreter="/usr/bin/python3",
        installer="none",
        envcheck="0",
        created_at=at,
        verified_at=at,
        bytes_total=0,
        bytes_shared=0,
        health=Health(verdict="Healthy"),
    )
    return msgspec.structs.replace(whole, **changes)


def versioned(root: Root, version_id: str, at: str = "2026-11-21T17:00:00Z") -> Version:
    """A version that was verified and is in use."""
    version = root.version(version_id)
    (version.directory / "bin").mkdir(parents=True)
    version.own.mkdir()
    version.python.write_text("")
    file_list.write(version)
    record.write(version, noted(version_id, at))
    before = root.current_id() or ""
    current.swap(root, version_id)
    journal = Journal(root.journal)
    journal.append(version_id, "begun")
    journal.append(version_id, "swapped", before=before)
    journal.append(version_id, "done")
    return version


# Which directory is ours


def test_places_that_can_never_be_one(tmp_path: Path, root: Root) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for path, why in {
        Path("/"): "cannot take all",
        Path.home(): "cannot take all",
        Path(f"{Path.home()}/x/.."): "cannot take all",
        tmp_path / "file": "this is a file",
        tmp_path / "file" / "below" / "it": f"{tmp_path}/file is a file",
        tmp_path / "link": "symbolic link",
        root.path / A: "inside",
        root.path / "deep" / "in" / "it": "inside",
        Path("relative"): "not an absolute path",
    }.items():
        with pytest.raises(UsageError, match=why):
            guard.look(Root(path))


# What differs


def test_a_version_is_compared_with_its_manifest(root: Root) -> None:
    version = root.version(A)
    lib = version.directory / "lib"
    lib.mkdir(parents=True)
    version.own.mkdir()
    version.python.parent.mkdir()
    version.python.write_text("")
    for name in ("a.py", "b.py", "c.py"):
        (lib / name).write_text("1")
    file_list.write(version)
    assert file_list.compare(version).sentences() == []
    (lib / "__pycache__").mkdir()
    (lib / "__pycache__" / "a.cpython-311.pyc").write_text("")
    (lib / "old.pyc").write_text("")
    (version.own / "doctor.json").write_text("")
    assert file_list.compare(version).sentences() == [], "byte code and our own files do not count"
    (lib / "a.py").unlink()
    (lib / "b.py").write_text("22")
    os.utime(lib / "c.py", ns=(1, 1))
    (lib / "new.py").write_text("")
    difference = file_list.compare(version)
    assert (difference.missing, difference.added) == (["lib/a.py"], ["lib/new.py"])
    assert difference.changed == ["lib/b.py", "lib/c.py"] and not difference.intact
    assert difference.sentences() == [
        "lib/a.py is gone",
        "lib/b.py, lib/c.py were changed",
        "lib/new.py was added",
    ]


# Recovery


def quiet(sentence: str) -> None:
    return None


def test_a_swap_that_was_not_recorded_is_completed(root: Root) -> None:
    journal = Journal(root.journal)
    versioned(root, A)
    versioned(root, B)
    lines = root.journal.read_text().splitlines(keepends=True)
    root.journal.write_text("".join(lines[:-2]))
    journal.append(B, "verified")
    recovery.recover(root, journal, quiet)
    assert [e.step for e in journal.entries() if e.version == B] == [
        "begun",
        "verified",
        "swapped",
        "done",
    ]
    assert (root.path / B).exists() and roots.last() == str(root.current)


def test_what_current_names_is_never_removed(root: Root) -> None:
    versioned(root, A)
    journal = Journal(root.journal)
    journal.append(A, "begun")
    recovery.recover(root, journal, quiet)
    assert (root.path / A).exists()


def test_what_stays_is_named_with_its_whole_path(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = versioned(root, A)
    (version.directory / "lib").mkdir()
    (version.directory / "lib" / "link").symlink_to(root.path)
    (version.directory / "lib" / "stays").write_text("")
    unlink = os.unlink

    def refuse(path: Any, **options: Any) -> None:
        if str(path).endswith("stays"):
            raise PermissionError(errno.EPERM, "Operation not permitted", path)
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(NotPutBack) as left:
        removal.discard(root, version)
    assert str(left.value) == f"{root.removing}/lib/stays: Operation not permitted"
    monkeypatch.undo()
    removal.empty(root)
    assert root.owner.exists() and not root.removing.exists()


# The order of versions


def test_versions_by_when_they_were_in_use(root: Root) -> None:
    versioned(root, A, "2026-11-21T10:00:00Z")
    versioned(root, B, "2026-11-21T11:00:00Z")
    versioned(root, C, "2026-11-21T12:00:00Z")
    journal = Journal(root.journal)
    assert existing.usable(root, journal) == [C, B, A]
    current.swap(root, A)
    journal.append(A, "swapped", before=C)
    assert existing.usable(root, journal) == [A, C, B]
    journal.append(B, "begun")
    assert existing.usable(root, journal) == [A, C], "begun anew, and not finished"


# The look


def test_the_look_wants_the_same_wish_and_the_same_inputs(root: Root) -> None:
    versioned(root, A)
    asked = Request(stack="tiny")
    assert existing.in_root(root, asked) is not None
    assert existing.in_root(root, Request(stack="other")) is None
    record.write(root.version(A), noted(A, inputs="of another envcheck"))
    assert existing.in_root(root, asked) is None
    assert existing.in_root(root, asked, "1" * 64) is not None, "the lock is the same"
    assert existing.in_root(root, asked, "2" * 64) is None
    other_index = Request(stack="tiny", indexes=["https://x.test/simple"])
    assert existing.in_root(root, other_index, "1" * 64) is not None, "it says whence all came"


# uv's cache


def test_what_uv_holds_beyond_the_kept_versions_is_superfluous() -> None:
    archives = places.uv_cache() / "archive-v0"
    for number, name in enumerate(
        ["ml_dtypes-0.5.0", "tensorflow-2.20.0", "tensorflow-2.21.0", "A.b-1.0+local", "gone-1"]
    ):
        (archives / str(number) / f"{name}.dist-info").mkdir(parents=True)
    assert uv_cache.packages()["a-b"] == {"1.0+local"}
    kept = [("ml-dtypes", "0.5.0"), ("tensorflow", "2.21.0"), ("a-b", "1.0+local")]
    assert uv_cache.superfluous(kept) == ["gone", "tensorflow"]


# Which roots there are


def test_roots_by_name_and_by_path(tmp_path: Path, root: Root) -> None:
    named = Root(places.environments() / "tiny")
    guard.claim(named)
    assert [found.path for found in roots.known()] == [named.path]
    roots.register(root)
    roots.register(named)
    assert {found.path for found in roots.known()} == {named.path, root.path}
    assert roots.find("tiny").path == named.path
    assert roots.find(str(root.path / "current")).path == root.path
    with pytest.raises(UsageError, match=r"which environment\? There are "):
        roots.find("")
    with pytest.raises(UsageError, match="no such environment"):
        roots.find("tni")
    roots.forget(root)
    assert roots.find("").path == named.path


def test_a_record_keeps_no_password() -> None:
    given = [
        "nvidia=https://ann:secret@x.test/simple",
        "https://token@y.test/simple",
        "https://z.test/a@b",
    ]
    kept = record.public(Request(stack="tiny", indexes=given))
    assert kept.indexes == [
        "nvidia=https://x.test/simple",
        "https://y.test/simple",
        "https://z.test/a@b",
    ]
    assert record.public(kept) == kept
