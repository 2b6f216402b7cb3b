"""A small archive whose headers claim gigabytes costs neither memory nor time, wherever one is read."""

from __future__ import annotations

import io
import os
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from envcheck.bounded_tar import BoundedTar
from envcheck.exit_codes import UsageError
from envcheck.install.images.archive import ImageArchive

CLAIMED = 200 << 20  # bytes
MOST = 24 << 20  # bytes of memory, of which the limits of the readers are the most


def header(kind: bytes, size: int, name: str = "x.json") -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def pax(**records: str) -> bytes:
    member = tarfile.TarInfo("x.json")
    member.pax_headers = {name.replace("_", "."): value for name, value in records.items()}
    return member.tobuf(tarfile.PAX_FORMAT)


SPARSE = pax(GNU_sparse_major="1", GNU_sparse_minor="0", GNU_sparse_realsize="9")
LONG = header(b"L", 900_000) + b"n" * 900_000 + bytes(-900_000 % 512)
HEADS = {
    "a pax header": header(tarfile.XHDTYPE, CLAIMED),
    "a global one": header(tarfile.XGLTYPE, CLAIMED),
    "a long name": header(tarfile.GNUTYPE_LONGNAME, CLAIMED),
    "long names of one member": LONG * 100,
    "a sparse map": SPARSE + b"9" * 12 + b"\n" + b"1\n" * 3_000_000,
}


@pytest.mark.parametrize("head", HEADS)
def test_a_header_that_claims_too_much_is_not_read(head: str, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    archive.write_bytes(HEADS[head])
    os.truncate(archive, CLAIMED + 4096)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="its headers are too large"):
            ImageArchive(str(archive), "x86_64")
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


def test_the_headers_of_all_members_are_bounded() -> None:
    whole = (LONG + header(b"0", 0)) * 80
    with pytest.raises(tarfile.ReadError, match="too large"):
        list(BoundedTar(io.BytesIO(whole)))


def test_sparse_members_are_refused(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    holed = header(tarfile.GNUTYPE_SPARSE, 0)
    archive.write_bytes(holed + bytes(1024))
    with pytest.raises(UsageError, match=r"x\.json is a sparse file"):
        ImageArchive(str(archive), "x86_64")


def test_a_long_name_is_a_name(tmp_path: Path) -> None:
    name = "/".join(["folder" * 20] * 20) + "/gpu1.json"
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        with tarfile.open(tmp_path / "a.tar", "w", format=form) as tar:
            for each in (name, "é", "last"):
                member = tarfile.TarInfo(each)
                member.size = 3
                tar.addfile(member, io.BytesIO(b"abc"))
        with (tmp_path / "a.tar").open("rb") as file:
            read = BoundedTar(file)
            members = list(read)
            assert [member.name for member in members] == [name, "é", "last"]
            assert [read.open(member).read() for member in reversed(members)] == [b"abc"] * 3


def test_members_that_overlap_and_negative_sizes_are_no_archive() -> None:
    backwards = bytearray(header(b"0", 0))
    backwards[124:136] = b"\xff" * 11 + b"\x00"  # -256, as GNU tar writes a number in base 256
    backwards[148:156] = b" " * 8
    backwards[148:156] = b"%06o\0 " % sum(backwards[:512])
    with pytest.raises(tarfile.TarError):
        list(BoundedTar(io.BytesIO(bytes(backwards) * 3)))
