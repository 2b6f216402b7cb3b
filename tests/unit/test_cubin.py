"""Instructions counted in cubins: known opcodes, and files that are damaged or are something else."""

from __future__ import annotations

import pytest
from build_cubin import cubin
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.collector.kernels.cubin import opcodes

WHOLE = cubin({"rate": [0x23C] * 3 + [0x435, 0x918], "signature_fp32": [0x223, 0xDF3]})


def test_kernels_are_counted_apart_and_by_kind() -> None:
    assert opcodes(WHOLE) == {
        "rate": {"HMMA": 3, "HFMA2.MMA": 1},
        "signature_fp32": {"FFMA": 1, "QGMMA": 1},
    }


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a 64-bit ELF"),
        (b".version 6.0", "not a 64-bit ELF"),
        (WHOLE[:40], "not a 64-bit ELF"),
        (WHOLE[:-10], "table ends behind the file"),
        (cubin({}, machine=62), "machine 62"),
        (WHOLE[:58] + b"\x08\0" + WHOLE[60:], "section table makes no sense"),
        (WHOLE[:62] + b"\x63\0", "section table makes no sense"),
    ],
    ids=range(7),
)
def test_what_is_no_cubin_is_a_value_error(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        opcodes(data + (WHOLE[64:] if words.startswith("section") else b""))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
def test_any_damage_is_a_count_or_a_value_error(at: int, damage: bytes) -> None:
    data = WHOLE[:at] + damage + WHOLE[at + len(damage) :]
    try:
        found = opcodes(data)
    except ValueError:
        return
    assert all(number > 0 for counts in found.values() for number in counts.values())
