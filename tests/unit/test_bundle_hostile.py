"""A bundle comes from anybody: nothing endless is read, and what it is not is said in one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from envcheck.exit_codes import UsageError
from envcheck.install.bundle import writing
from envcheck.install.bundle.index import BundleFile, BundleIndex
from envcheck.install.bundle.reading import Bundle
from envcheck.install.bundle.writing import Content
from envcheck.install.lockfile import LockedFile, LockedPackage, Lockfile

WHEEL = Content.of(b"a wheel")
NAME = "demo-1-py3-none-any.whl"
FILES = {
    f"files/{NAME}": WHEEL,
    "pylock.toml": Content.of(b"a lock."),
    "stack.toml": Content.of(b""),
}
LOCK = Lockfile(
    stack="demo",
    release="1",
    python="3.12",
    architecture="x86_64",
    packages=[
        LockedPackage(
            name="demo",
            version="1",
            index="",
            file=LockedFile(name=NAME, url="", sha256=WHEEL.sha256),
        )
    ],
)


def index(**changes: object) -> BundleIndex:
    files = {name: BundleFile(content.sha256, content.size) for name, content in FILES.items()}
    made = BundleIndex(
        envcheck="0", stack="demo", release="1", python="3.12", architecture="x86_64",
        created_at="", pythons=[], files=files,
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    writing.write(tmp_path / "bundle", index(), FILES)
    return tmp_path / "bundle"


def test_a_good_one_is_taken(bundle: Path) -> None:
    found = Bundle(str(bundle))
    found.verify(LOCK)
    assert found.path(LOCK.files[0]).read_bytes() == b"a wheel"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.symlink_to("/dev/zero"), "a symbolic link, which is not followed"),
        (os.mkfifo, "not a regular file"),
        (Path.mkdir, "not a regular file"),
        (lambda path: path.write_bytes(b"a longer wheel"), "should have 7 bytes, and has 14"),
        (lambda path: path.write_bytes(b"a w4eel"), "should have sha256"),
    ],
    ids=["link", "fifo", "directory", "longer", "other"],
)
@pytest.mark.parametrize("name", [f"files/{NAME}", "pylock.toml"])
def test_a_file_that_is_none(
    bundle: Path, name: str, make: Callable[[Path], object], words: str
) -> None:
    (bundle / name).unlink()
    make(bundle / name)
    with pytest.raises(UsageError, match=words) as refused:
        Bundle(str(bundle)).verify(LOCK)
        Bundle(str(bundle)).lock()
    assert Path(name).name in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        b'{"format": ' + b"1" * 5000 + b"}",
        b'{"a": ' + b"[" * 100_000,
        b'{"format": 1, "created_at": "\xff"}',
        b"[]",
    ],
    ids=["integer", "deep", "not utf-8", "list"],
)
def test_an_index_that_no_envcheck_wrote(bundle: Path, text: bytes) -> None:
    (bundle / "bundle.json").write_bytes(text)
    with pytest.raises(UsageError, match=r"not a bundle: bundle\.json: "):
        Bundle(str(bundle))


def test_a_file_of_another_size_than_the_lock_says_is_refused(bundle: Path) -> None:
    """Whoever makes a bundle writes its index, too: of the two, the lock is what is installed."""
    (package,) = LOCK.packages
    file = msgspec.structs.replace(package.file, size=6)
    lock = msgspec.structs.replace(LOCK, packages=[msgspec.structs.replace(package, file=file)])
    with pytest.raises(UsageError, match="should have 6 bytes, and"):
        Bundle(str(bundle)).check(lock)
