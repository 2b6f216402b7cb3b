"""Snapshots in a stream, one after another: what is none costs itself alone."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from whole import whole

from envcheck.exit_codes import UsageError
from envcheck.facts import snapshot as snapshots
from envcheck.fleet.arriving import unpack
from envcheck.fleet.folder import FleetFolder, Member
from envcheck.fleet.judging import judge
from envcheck.fleet.stream import values

ONE, OTHER = b'{"a": {"b": [1, {"c": "} {"}]}}', b'{"x":"\\"}\\n{"}'


def read(text: bytes) -> list[bytes]:
    return [value.strip() for value in values(io.BytesIO(text))]


@pytest.mark.parametrize("between", [b"", b" ", b"\n", b"\r\n\r\n", b"\n\n\t"])
def test_values_are_apart_by_anything(between: bytes) -> None:
    assert read(between.join([ONE, OTHER, ONE])) == [ONE, OTHER, ONE]
    assert read(ONE + between) == [ONE]


@pytest.mark.parametrize(
    "garbage",
    [
        b"Welcome to gpu-07!\n",
        b'{"schema": 1, "machine": {"a": 1\n',
        b'{"schema": 1, "machine": "not clo\n',
        b'{"schema":\n',
        b"{{{\n",
        b"\xff\xfe\n",
    ],
)
def test_what_is_no_value_costs_itself_alone(garbage: bytes) -> None:
    found = read(ONE + b"\n" + garbage + OTHER + b"\n" + ONE + b"\n")
    assert found.count(ONE) == 2 and OTHER in found and len(found) == 4


def test_indented_snapshots() -> None:
    text = snapshots.dump(whole())
    assert read(text * 3) == [text.strip()] * 3


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.recursive(
    st.text() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).map(lambda value: {"v": value}), max_size=6), st.sampled_from(["", " ", "\n"]))  # fmt: skip
def test_what_was_written_is_read(told: list[object], between: str) -> None:
    text = between.join(json.dumps(value) for value in told).encode()
    assert [json.loads(value) for value in read(text)] == told


def arrived(text: bytes, folder: FleetFolder) -> list[Member]:
    return unpack(io.BufferedReader(io.BytesIO(text)), folder)  # type: ignore[arg-type]


def test_machines_are_called_by_their_names_or_places(tmp_path: Path) -> None:
    text = snapshots.dump(whole())
    named = b'{"name": "gpu/07", "snapshot": ' + text + b"}"
    folder = FleetFolder(tmp_path)
    members = arrived(text + named + b"oops\n" + text, folder)
    assert [member.name for member in members] == ["gpu/07", "machine-1", "machine-3", "machine-4"]
    judged = [judge(folder, member) for member in members]
    assert [one.answer for one in judged] == ["answered", "answered", "unreadable", "answered"]


def test_an_empty_stream_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is empty"):
        arrived(b" \n", FleetFolder(tmp_path))
