"""METADATA out of a wheel's archive, by its directory alone: as zipfile finds it, also in odd archives."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

from envcheck.install.index import wheel_zip

METADATA = b"Metadata-Version: 2.1\nName: demo\n" + b"a line that repeats itself\n" * 50
NAME = "demo-1.0.dist-info/METADATA"


def archive(
    entries: dict[str, bytes] | None = None, *, comment: bytes = b"", **options: Any
) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", **options) as made:
        for name, data in (entries or {"demo.py": b"x" * 999, NAME: METADATA}).items():
            made.writestr(name, data)
        made.comment = comment
    return out.getvalue()


def read(data: bytes, largest: int = 1 << 20) -> bytes:
    return wheel_zip.read(io.BytesIO(data), "demo-1.0", largest)


def zip64() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made, made.open(NAME, "w", force_zip64=True) as entry:
        entry.write(METADATA)
    return out.getvalue()


USUAL = {
    "stored": archive(),
    "deflated": archive(compression=zipfile.ZIP_DEFLATED),
    "zip64 for its local header": zip64(),
}
ODD = {
    "a comment": archive(comment=b"signed"),
    "a program before it": b"#!/bin/sh\n" + archive(),
    "another compression": archive(compression=zipfile.ZIP_BZIP2),
}


@pytest.mark.parametrize("data", [*USUAL.values(), *ODD.values()], ids=[*USUAL, *ODD])
def test_it_is_found(data: bytes) -> None:
    assert read(data) == METADATA


@pytest.mark.parametrize("data", USUAL.values(), ids=USUAL)
def test_zipfile_is_not_needed(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(wheel_zip, "_by_zipfile")
    assert read(data) == METADATA


def test_its_own_and_not_that_of_a_vendored_distribution() -> None:
    other = {"aaa-1.dist-info/METADATA": b"no", "demo/_v/x.dist-info/METADATA": b"no"}
    assert read(archive({**other, NAME: METADATA})) == METADATA
    assert read(archive({"Demo-1.0.dist-info/METADATA": METADATA, **other})) == METADATA


@pytest.mark.parametrize(
    "entries", [{"demo.py": b""}, {"a.dist-info/METADATA": b"", "b.dist-info/METADATA": b""}]
)
def test_none_of_its_own(entries: dict[str, bytes]) -> None:
    for comment in (b"", b"read by zipfile"):
        with pytest.raises(wheel_zip.NoMetadata):
            read(archive(entries, comment=comment))


def test_more_than_it_may_have() -> None:
    for comment in (b"", b"read by zipfile"):
        with pytest.raises(wheel_zip.TooLarge):
            read(archive(comment=comment), largest=len(METADATA) - 1)


def test_more_than_it_says() -> None:
    packed = archive(compression=zipfile.ZIP_DEFLATED)
    said = len(METADATA).to_bytes(4, "little")
    with pytest.raises(zipfile.BadZipFile):
        read(packed.replace(said, (7).to_bytes(4, "little")))


def test_damage_is_said() -> None:
    whole = archive()
    for data in (
        whole.replace(b"Name: demo", b"Name: evil"),
        whole.replace(b"PK\1\2", b"PK\0\0", 1),
        whole[:-40],
        b"",
    ):
        with pytest.raises(zipfile.BadZipFile):
            read(data)


def test_a_remote_file_may_come_in_pieces() -> None:
    class Piecemeal(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self.inner = io.BytesIO(data)

        def seek(self, offset: int, whence: int = 0) -> int:
            return self.inner.seek(offset, whence)

        def readinto(self, buffer: Any) -> int:
            return self.inner.readinto(memoryview(buffer)[:100])

    assert wheel_zip.read(Piecemeal(USUAL["deflated"]), "demo-1.0", 1 << 20) == METADATA
