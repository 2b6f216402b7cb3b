"""What people paste: shifted, cut, or an error alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import build
import captures
import msgspec
import pytest

from envcheck.checks.engine import diagnose
from envcheck.collector.facts import dumps
from envcheck.collector.smi import document
from envcheck.facts.gpu import NvidiaSmi
from envcheck.facts.snapshot import SCHEMA, Snapshot


def facts_of(text: str, tmp_path: Path) -> dict[str, Any]:
    file = tmp_path / "smi.txt"
    file.write_bytes(text.encode())
    return document.read_file(str(file))


def typed(facts: dict[str, Any]) -> NvidiaSmi:
    return msgspec.json.decode(dumps(facts).encode(), type=NvidiaSmi)


def alarms(facts: dict[str, Any]) -> set[tuple[str, str]]:
    """What the doctor says of the document, besides that it was cut."""
    sent = msgspec.structs.replace(build.document(nvidia_smi=typed(facts)), origin="nvidia-smi")
    results = diagnose(Snapshot(schema=SCHEMA, redacted=True, machine=sent, target=None)).results
    return {
        (result.code, result.outcome)
        for result in results
        if result.outcome in ("fail", "warn") and result.code != "DRV-011"
    }


# Driver 610


# Wrapped


# Cut


def cuts(text: str, step: int = 1) -> Iterator[str]:
    """The text up to each line, and into the midst of the next one."""
    every = text.split("\n")
    for number in range(1, len(every), step):
        whole = "\n".join(every[:number]) + "\n"
        yield whole
        yield whole + every[number][: len(every[number]) * 2 // 3]


def new_alarms(text: str, tmp_path: Path, step: int = 1) -> set[tuple[str, str]]:
    """Of the text cut at every line: what is said that is not said of the whole."""
    found: set[tuple[str, str]] = set()
    for cut in cuts(text, step):
        try:
            found |= alarms(facts_of(cut, tmp_path))
        except ValueError:
            continue
    return found - alarms(facts_of(text, tmp_path))


def section(name: str) -> str:
    text = captures.path(name).read_text()
    begin = text.rindex("\n", 0, text.index("NVSMI LOG")) + 1
    return text[begin : text.index("\n####", begin)]


SECTIONS = (captures.H200, captures.H100_MIG, captures.RTX_4080)


@pytest.mark.heavy
def test_every_capture_cut_at_many_lines(tmp_path: Path) -> None:
    for file in sorted((captures.FOLDER / "nvidia-smi-xml").glob("*.xml")):
        assert new_alarms(file.read_text(errors="replace"), tmp_path, step=5) == set(), file.name
    for name in SECTIONS:
        assert new_alarms(section(name), tmp_path) == set(), name


# Errors alone


def test_no_devices(tmp_path: Path) -> None:
    assert facts_of("$ nvidia-smi\n> No devices were found\n", tmp_path)["gpus"] == []


# Hostile


@pytest.mark.parametrize(
    "piece",
    ["NVSMI LOG\n", "GPU 0: ",
     "=", "==============NVSMI LOG==============\nGPU 00000000:01:00.0\n", "<nvidia_smi_log><gpu>", "\n",
     "Failed to initialize NVML"],
)  # fmt: skip
def test_a_megabyte_of_anything_is_read_in_linear_time(piece: str, tmp_path: Path) -> None:
    taken = []
    for size in (100_000, 1_000_000):
        began = time.process_time()
        try:
            facts_of(piece * (size // len(piece)), tmp_path)
        except ValueError as error:
            assert len(str(error)) < 300
        taken.append(time.process_time() - began)
    assert taken[1] < 2.0 or taken[1] < 25 * taken[0]


# Compute capability


# What the doctor makes of it
