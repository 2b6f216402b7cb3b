"""What people paste: shifted, cut, or an error alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
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

NEW = """\
==============NVSMI LOG==============

Timestamp                                              : Sun Sep  6 08:21:38 2026
Driver Version                                         : 610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]
CUDA Version                                           : 13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]
KMD Version                                            : 610.57.04
CUDA UMD Version                                       : 13.3

Attached GPUs                                          : 2
GPU 00000000:01:00.0
    Product Name                                       : NVIDIA H100 80GB HBM3
    Product Brand                                      : NVIDIA
    Product Architecture                               : Hopper
    Persistence Mode                                   : Enabled
    MIG Mode
        Current                                        : Enabled
        Pending                                        : Enabled
    MIG Device
        Index                                          : 0
        GPU Instance ID                                : 9
        Compute Instance ID                            : 0
        Device Attributes
            Shared
                Multiprocessor count                   : 16
        FB Memory Usage
            Total                                      : 9984 MiB
    Accounting Mode                                    : Disabled
    GPU UUID                                           : GPU-00000000-0000-0000-0000-000000000001
    PCI
        Bus Id                                         : 00000000:01:00.0
        GPU Link Info
            PCIe Generation
                Max                                    : 5
                Current                                : 5
            Link Width
                Max                                    : 16x
                Current                                : 16x
    Fan Speed                                          : N/A
    Performance State                                  : P0
    Clocks Event Reasons
        Idle                                           : Not Active
        SW Power Cap                                   : Active
        HW Slowdown                                    : Not Active
    FB Memory Usage
        Total                                          : 81559 MiB
        Used                                           : 4 MiB
    Compute Mode                                       : Default
    ECC Mode
        Current                                        : Enabled
        Pending                                        : Enabled
    ECC Errors
        Volatile
            SRAM Uncorrectable Parity                  : 0
            SRAM Uncorrectable SEC-DED                 : 0
            DRAM Uncorrectable                         : 0
    Remapped Rows                                      : N/A
    Temperature
        GPU Current Temp                               : 39 C
    GPU Power Readings
        Average Power Draw                             : 71.15 W
        GPU Ceiling Power Limit
            Current Power Limit                        : 400.00 W
            Default Power Limit                        : 700.00 W
            Min Power Limit                            : 200.00 W
            Max Power Limit                            : 700.00 W
    Clocks
        SM                                             : 345 MHz
    Fabric
        State                                          : Completed
        Status                                         : Success
    Processes                                          : None
    Capabilities
        EGM                                            : disabled

GPU 00000000:02:00.0
    Product Name                                       : NVIDIA H100 80GB HBM3
    Persistence Mode                                   : Enabled
    MIG Mode
        Current                                        : Enabled
        Pending                                        : Enabled
    MIG Device
        Index                                          : 0
        GPU Instance ID                                : 9
        Compute Instance ID                            : 0
    Accounting Mode                                    : Disabled
    Processes
        Process ID                                     : 4711
            Type                                       : C
            Name                                       : python3
            Used GPU Memory                            : 512 MiB
    Capabilities
        EGM                                            : disabled
"""  # noqa: E501


def facts_of(text: str, tmp_path: Path) -> dict[str, Any]:
    file = tmp_path / "smi.txt"
    file.write_bytes(text.encode())
    return document.read_file(str(file))


def typed(facts: dict[str, Any]) -> NvidiaSmi:
    return msgspec.json.decode(dumps(facts).encode(), type=NvidiaSmi)


def alarms(facts: dict[str, Any]) -> set[tuple[str, str]]:
    """What the doctor says of the document, besides that it was cut."""
    sent = msgspec.structs.replace(build.document(nvidia_smi=typed(facts)), origin="nvidia-smi")
    told = diagnose(Snapshot(schema=SCHEMA, redacted=True, machine=sent, target=None)).results
    return {
        (result.code, result.outcome)
        for result in told
        if result.outcome in ("fail", "warn") and result.code != "DRV-011"
    }


def lines(text: str, change: Callable[[str], str]) -> str:
    return "\n".join(map(change, text.split("\n")))


# Driver 610


def test_the_names_of_driver_610(tmp_path: Path) -> None:
    facts = facts_of(NEW, tmp_path)
    assert (facts["driver_version"], facts["cuda_version"]) == ("610.57.04", "13.3")
    gpu = facts["gpus"][0]
    limits = {key: value for key, value in gpu.items() if key.startswith("power_")}
    assert limits == {
        "power_draw_w": 71.15, "power_limit_w": 400.0, "power_default_limit_w": 700.0,
        "power_min_limit_w": 200.0, "power_max_limit_w": 700.0,
    }  # fmt: skip
    assert ("GPU-009", "warn") in alarms(facts)
    assert not {code for code, _ in alarms(facts)} & {"DRV-008", "DRV-006"}


# Wrapped


WRAPPED: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "a prompt before it": lambda text: f"user@node:~$ nvidia-smi -q\n\n{text}user@node:~$ \n",
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "old Mac": lambda text: text.replace("\n", "\r"),
    "a fence": lambda text: f"Here:\n```text\n{text}```\nThanks\n",
    "indented": lambda text: lines(text, lambda line: f"    {line}"),
    "tabs": lambda text: lines(text, lambda line: f"\t{line}"),
    "the marker moved alone": lambda text: re.sub("(?m)^(=+NVSMI)", r"    \1", text),
    "all but the marker moved": lambda text: lines(text, lambda line: f"  {line}").lstrip(),
}  # fmt: skip


@pytest.mark.parametrize("how", WRAPPED)
def test_text_however_it_was_pasted(how: str, tmp_path: Path) -> None:
    assert facts_of(WRAPPED[how](NEW), tmp_path) == facts_of(NEW, tmp_path)


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
