"""The NVML probe on nvidia-ml-py itself, whose library answers for two described GPUs."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from world import nvml_face
from world.bases import BASES
from world.machine import Machine, nvml_rows

from envcheck.collector.facts import dumps
from envcheck.collector.probes import nvml
from envcheck.collector.runtime.context import Context
from envcheck.facts.gpu import Gpu, Nvml


def two(*first: str, base: str = "h100", driver: str = "", **values: Any) -> Machine:
    """Two GPUs. ``first``: rows that come before all others; keyword arguments change the first GPU."""
    made = BASES[base]()
    made.gpus = made.gpus[:2]
    made.nvml_first += first
    made.driver = driver or made.driver
    made.gpu(0).change(**values)
    return made


def collect(
    machine: Machine | None = None,
    root: str = "/nonexistent",
    lacks: tuple[str, ...] = (),
    unknown: tuple[str, ...] = (),
) -> Nvml:
    """The probe's facts, as the Snapshot's types; ``lacks``: functions that libnvidia-ml does not have,
    ``unknown``: those that this pynvml does not know."""
    module = nvml_face.module(nvml_rows(machine or two()), lacks)
    for name in unknown:
        delattr(module, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvml, "load", lambda path: module)
        facts = nvml.collect(Context({}, root=root, params={"pynvml": "/x/pynvml.py"}))
    known = {f"gpus.{name}" for name in Gpu.__struct_fields__} | set(facts.values)
    assert set(facts.sources) - {"*"} <= known
    return msgspec.json.decode(dumps(facts.values).encode(), type=Nvml)


def gpus(facts: Nvml) -> list[Gpu]:
    assert isinstance(facts.gpus, list)
    return facts.gpus


def first(*rows: str, driver: str = "", **values: Any) -> Gpu:
    return gpus(collect(two(*rows, driver=driver, **values)))[0]


def code(number: int, function: str, key: str = "*", handle: str = "1") -> str:
    return f"{handle} {function} {key} {number} -"


def field(number: int, value: int) -> str:
    kind, blob = struct.pack("=I", 3), struct.pack("=Q", value)
    return f"1 nvmlDeviceGetFieldValues {number},0 0 - {kind.hex()} {blob.hex()}"
