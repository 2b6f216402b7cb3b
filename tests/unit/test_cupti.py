"""Kernel names out of activity records that the test lays out, and memory that may not be there."""

from __future__ import annotations

import struct

import pytest

from envcheck.collector.kernels import cupti

NAMES = {
    0x1000: b"ampere_sgemm_128x64_tn\0",
    0x2000: b"_Z3addPf\0junk",
    0x3000: b"\xff\xfe\0",
    0x4000: b"\0",
}


def read(address: int, size: int) -> bytes:
    if address not in NAMES:
        raise OSError(5, "nothing there")
    return NAMES[address][:size]


def record(kind: int, name: int, size: int = 160) -> bytes:
    """As CUpti_ActivityKernel4 to 10 begin: kind at 0, the name's address at 104."""
    made = bytearray(size)
    struct.pack_into("<I", made, 0, kind)
    struct.pack_into("<Q", made, 104, name)
    return bytes(made)


def test_names() -> None:
    records = [record(10, 0x1000), record(1, 0x2000), record(3, 0x2000, 112), record(10, 0x1000)]
    assert list(cupti.names(records, read)) == [
        "ampere_sgemm_128x64_tn",
        "_Z3addPf",
        "ampere_sgemm_128x64_tn",
    ]


@pytest.mark.parametrize(
    "odd",
    [record(10, 0x9000), record(10, 0), record(10, 0x3000), record(10, 0x4000), record(10, 0x1000)[:111],
     record(10, 2**64 - 1), b"\0\0\0\0"],
)  # fmt: skip
def test_what_is_no_name(odd: bytes) -> None:
    assert list(cupti.names([odd, record(10, 0x1000)], read)) == ["ampere_sgemm_128x64_tn"]


def test_a_name_without_an_end_is_none() -> None:
    assert list(cupti.names([record(10, 1)], lambda _address, size: b"x" * size)) == []


def test_the_loader_is_asked_for_the_right_major_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def none(name: str) -> None:
        asked.append(name)
        raise OSError(f"no {name}")

    monkeypatch.setattr(cupti.ctypes, "CDLL", none)
    with pytest.raises(cupti.CuptiError, match=r"libcupti\.so\.12") as raised:
        cupti._open(None, 12)
    assert asked[:3] == ["libcupti.so.12", "libcupti.so.13", "libcupti.so.11.8"]
    assert asked[-1] == "libcupti.so"
    assert raised.value.reason == "absent"
