"""Reading a Snapshot: strict, bounded, and with one sentence for everything wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from build import Gpu, gpu_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.cli import sources
from envcheck.collector import documents as collector_documents
from envcheck.collector import facts as collector_facts
from envcheck.facts.base import Reason
from envcheck.facts.snapshot import (
    LIMIT,
    MACHINE_SECTIONS,
    SCHEMA,
    TARGET_SECTIONS,
    Document,
    Snapshot,
    SnapshotError,
    dump,
    load,
    unknown_fields,
)

GOOD = dump(gpu_snapshot(Gpu(index=0, name="NVIDIA H100 80GB HBM3", temperature_c=40)))


def changed(**changes: object) -> bytes:
    whole = json.loads(GOOD)
    whole.update(changes)
    return json.dumps(whole).encode()


def test_what_is_written_is_read_back() -> None:
    assert load(GOOD) == gpu_snapshot(Gpu(index=0, name="NVIDIA H100 80GB HBM3", temperature_c=40))


def test_the_schema_describes_what_is_written() -> None:
    jsonschema.validate(json.loads(GOOD), msgspec.json.schema(Snapshot))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (GOOD[: len(GOOD) // 2], "not valid JSON"),
        (b"nvidia-smi", "not valid JSON"),
        (b'{"hello": 1}', "not a Snapshot"),
        (b"[1, 2]", "does not fit the schema"),
        (changed(schema=SCHEMA + 1), "upgrade envcheck"),
        (changed(schema="1"), "$.schema"),
        (changed(redacted="yes"), "Expected `bool`, got `str` - at `$.redacted`"),
        (
            GOOD.replace(b'"temperature_c": 40', b'"temperature_c": "hot"'),
            "at `$.machine.nvml.facts.gpus[0].temperature_c`",
        ),
        (GOOD.replace(b"NVIDIA H100", b"\xff\xfe"), "UTF-8"),
        (b"[" * 100_000, "does not fit the schema"),
        (b'{"schema": 1, "machine": ' + b"[" * 100_000, "does not fit the schema"),
        (b'{"schema": 1, "surprise": ' + b"[" * 100_000, "nested too deeply"),
        (b"\0" * 100, "not valid JSON"),
    ],
)
def test_bad_input_is_one_sentence_that_names_the_place(data: bytes, sentence: str) -> None:
    with pytest.raises(SnapshotError) as error:
        load(data)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("field", ["schema", "surprise", "machine", "nvml", "acme", "facts"])
@pytest.mark.parametrize(
    "value",
    [
        b'"\xff"',
        b'{"\xff": 1}',
        b"9" * 6000,
        b"-" + b"9" * 6000,
        b"1e" + b"9" * 6000,
        b"[" * 100_000 + b"]" * 100_000,
        b'"\\ud800"',
        b"NaN",
    ],
)
def test_whatever_stands_in_any_field_is_read_or_one_sentence(field: str, value: bytes) -> None:
    """What an older reader ignored ("surprise") is read once more, to be named."""
    places = {
        "schema": (b'"schema":1', b'"schema":' + value),
        "surprise": (b'"schema":1', b'"surprise":' + value + b',"schema":1'),
        "machine": (b'"machine":{', b'"machine":{"surprise":' + value + b","),
        "nvml": (b'"nvml":{', b'"nvml":{"surprise":' + value + b","),
        "acme": (
            b'"machine":{',
            b'"machine":{"extensions":{"acme":{"outcome":"ok","facts":{"x":' + value + b"}}},",
        ),
        "facts": (b'"temperature_c":40', b'"temperature_c":' + value),
    }
    compact = json.dumps(json.loads(GOOD), separators=(",", ":")).encode()
    old, new = places[field]
    assert old in compact
    data = compact.replace(old, new, 1)
    try:
        unknown_fields(data, load(data))
    except SnapshotError as error:
        assert "\n" not in str(error) and len(str(error)) < 300


def test_what_a_newer_collector_adds_is_ignored_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = json.loads(GOOD)
    raw["surprise"] = [1]
    raw["machine"]["fans"] = {"outcome": "ok", "facts": {"rpm": 1}}
    raw["machine"]["nvml"]["facts"]["gpus"][0]["colour"] = "black"
    raw["machine"]["extensions"] = {"acme": {"outcome": "ok", "facts": {"any": [{"thing": None}]}}}
    data = json.dumps(raw).encode()
    found = load(data)
    assert found.machine.extensions["acme"].facts == {"any": [{"thing": None}]}
    places = ["machine.nvml.facts.gpus[0].colour", "machine.fans", "surprise"]
    assert sorted(unknown_fields(data, found)) == sorted(places)
    assert unknown_fields(dump(found), found) == []
    (tmp_path / "newer.json").write_bytes(data)
    assert sources.read_snapshot(str(tmp_path / "newer.json")).snapshot == found
    errors = capsys.readouterr().err
    assert (
        "fields that it does not know are ignored: machine." in errors and errors.count("\n") == 1
    )
    raw["machine"]["nvml"]["facts"]["gpus"][0]["name"] = 5
    with pytest.raises(SnapshotError, match=r"gpus\[0\]\.name"):
        load(json.dumps(raw).encode())


WRONG = r"\$\.machine\.extensions"
LARGE = {"acme": {"outcome": "ok", "facts": {"a": "x" * (1 << 20)}}}


@pytest.mark.parametrize(
    ("extensions", "sentence"),
    [
        ([], WRONG),
        ({"a b": {"outcome": "ok"}}, WRONG),
        ({"a": 5}, WRONG),
        ({"a": {"outcome": "fine"}}, WRONG),
        ({"a": {"outcome": "ok", "facts": 1}}, WRONG),
        (LARGE, "the extension acme are larger than 1048576 bytes"),
    ],
)
def test_what_extensions_must_look_like(extensions: Any, sentence: str) -> None:
    raw = json.loads(GOOD)
    raw["machine"]["extensions"] = extensions
    with pytest.raises(SnapshotError, match=sentence):
        load(json.dumps(raw).encode())


def test_too_large_is_said_before_it_is_parsed() -> None:
    with pytest.raises(SnapshotError, match="larger than 64 MiB"):
        load(b" " * (LIMIT + 1))


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.integers(0, len(GOOD)).map(lambda n: GOOD[:n])))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        load(data)
    except SnapshotError as error:
        assert str(error)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=3))
def test_no_mutation_raises_anything_else(position: int, patch: bytes) -> None:
    try:
        load(GOOD[:position] + patch + GOOD[position + len(patch) :])
    except SnapshotError as error:
        assert str(error)


def test_collector_and_core_agree_on_schema_reasons_and_probes() -> None:
    from typing import get_args

    from envcheck.collector import probes

    assert collector_documents.SCHEMA == SCHEMA
    assert set(collector_facts.REASONS) == set(get_args(Reason))
    machine = probes.of("machine")
    assert {*machine, *probes.of("target")} <= set(Document.__struct_fields__)
    assert {*machine, *probes.of("target"), "interpreter"} == MACHINE_SECTIONS | TARGET_SECTIONS
    inside = {name for name, probe in machine.items() if probe.in_container}
    assert inside == MACHINE_SECTIONS - {"pci", "containers"}


@pytest.mark.parametrize("address", ["0000:01:00.0; reboot", "$(reboot)", "01:00.0\n; x", ""])
def test_an_address_holds_nothing_for_a_shell(address: str) -> None:
    """It stands in commands that the report asks its reader to paste."""
    healthy = gpu_snapshot(Gpu(index=0, pci_address="0000:01:00.0"))
    assert load(dump(healthy)) == healthy
    with pytest.raises(SnapshotError, match=r"at `\$\.machine\.nvml\.facts\.gpus"):
        load(dump(gpu_snapshot(Gpu(index=0, pci_address=address))))
