"""A simulated fleet, for `envcheck demo fleet`: the demos' Snapshots, varied, with faults put in.

Forty machines with eight H100s each in five racks; ``demo_fleet.csv`` has those that are not as the many.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from .. import data
from .folder import FleetFolder, Member, Outcome

SIMULATED = "40 machines with 8 × H100 each, some with simulated faults"
DEMOS = ("healthy", "heat", "driver-update", "odd-machine")

_COUNT, _IN_RACK = 40, 8
_VBIOS = "96.00.74.00.1A"
_SPREAD = 0.006  # of the GPUs' clocks under load


class _Machine(msgspec.Struct, frozen=True):
    """demo: whose Snapshot it has. was, is_: in its JSON. clock: of this GPU, beside the others'."""

    machine: str
    demo: str = "healthy"
    was: str = ""
    is_: str = msgspec.field(name="is", default="")
    gpu: int | None = None
    clock: float = 1.0
    outcome: Outcome = "answered"
    reason: str = ""


def write(folder: FleetFolder, demos: Mapping[str, bytes]) -> None:
    """Fill a fleet's directory. demos: the Snapshots of DEMOS, by their names. Raises OSError."""
    bases = {name: msgspec.json.decode(text) for name, text in demos.items()}
    # two thirds of it, and the machine's own tell enough
    bases["healthy"]["target"].pop("micro_kernels")
    others = {row.machine: row for row in data.rows("demo_fleet", _Machine)}
    members = []
    for number in range(1, _COUNT + 1):
        name = f"gpu{number:02}"
        one = others.get(name) or _Machine(name)
        groups = [("group", f"rack-{(number - 1) // _IN_RACK + 1}")]
        members.append(Member(name=name, outcome=one.outcome, reason=one.reason, groups=groups))
        if one.outcome == "answered":
            text = msgspec.json.encode(_snapshot(one, bases[one.demo])).decode()
            text = text.replace(one.was, one.is_) if one.was else text
            folder.file(name).write_text(text + "\n", encoding="utf-8")
    folder.write_roster("simulated", members)


def _snapshot(one: _Machine, base: dict[str, Any]) -> dict[str, Any]:
    snapshot = copy.deepcopy(base)
    snapshot["simulated"] = SIMULATED
    machine = snapshot["machine"]
    machine["host"]["facts"]["hostname"] = one.machine
    for probe in ("nvml", "nvidia_smi") if one.demo != "driver-update" else ():
        for gpu in machine[probe]["facts"]["gpus"]:
            gpu["vbios"] = _VBIOS
    for run in machine.get("micro_kernels", {}).get("facts", {}).get("runs", ()):
        # between -1 and 1, the same each time
        noise = zlib.crc32(f"{one.machine} {run['index']}".encode()) / (1 << 31) - 1
        factor = (one.clock if run["index"] == one.gpu else 1.0) * (1 + _SPREAD * noise)
        for rate in (mode["rate"] for mode in run["modes"]):
            for figure in {"tflops", "fp32_tflops", "clock_mhz"} & rate.keys():
                rate[figure] *= factor
    return snapshot
