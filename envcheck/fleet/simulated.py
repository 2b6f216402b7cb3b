"""A simulated fleet, for `envcheck demo fleet`: the demos' Snapshots, varied, with faults put in.

Forty machines with eight H100s each in five racks. Nothing is drawn by chance: it is the same each time.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from .folder import FleetFolder, Member, Outcome

SIMULATED = "40 machines with 8 × H100 each, some with simulated faults"
DEMOS = ("healthy", "heat", "driver-update", "odd-machine")

_COUNT = 40
_IN_RACK = 8
_VBIOS = "96.00.74.00.1A"
_SPREAD = 0.006  # of the GPUs' clocks under load

# Not as the many are: the demo that a machine is made of.
_OF = {
    **dict.fromkeys(("gpu03", "gpu11", "gpu14", "gpu27", "gpu36", "gpu38"), "driver-update"),
    **dict.fromkeys(
        (f"gpu{number}" for number in (17, 18, 19, 21, 22, 23, 24)), "heat"
    ),  # of one rack
    "gpu29": "odd-machine",
}

# What one machine alone has, in its Snapshot's JSON.
_OTHERWISE = {
    "gpu08": (_VBIOS.encode(), b"96.00.5E.00.01"),  # on all of its GPUs: by itself it looks well
    "gpu25": (b":2063000,", b":1931928,"),  # MiB of memory: two modules less
    "gpu33": (b"5.15.0-113", b"5.15.0-107"),
}
_SLOW = {"gpu12 6": 0.93}

_SILENT: dict[str, tuple[Outcome, str]] = {
    "gpu06": ("unreachable", "ssh: connect to host port 22: No route to host"),
    "gpu26": ("timed-out", "it did not answer within 600 s"),
    "gpu40": ("unreachable", "ssh: connect to host port 22: No route to host"),
}


def write(folder: FleetFolder, demos: Mapping[str, bytes]) -> None:
    """Fill a fleet's directory. demos: the Snapshots of DEMOS, by their names. Raises OSError."""
    bases = {name: msgspec.json.decode(data) for name, data in demos.items()}
    bases["healthy"]["target"].pop(
        "micro_kernels"
    )  # two thirds of it, and the machine's own tell enough
    members = []
    for number in range(1, _COUNT + 1):
        name = f"gpu{number:02}"
        groups = [("group", f"rack-{(number - 1) // _IN_RACK + 1}")]
        outcome, reason = _SILENT.get(name, ("answered", ""))
        members.append(Member(name=name, outcome=outcome, reason=reason, groups=groups))
        if outcome == "answered":
            snapshot = _machine(name, bases[_OF.get(name, "healthy")])
            text = msgspec.json.encode(snapshot).replace(*_OTHERWISE.get(name, (b"", b"")))
            folder.file(name).write_bytes(text + b"\n")
    folder.write_roster("simulated", members)


def _machine(name: str, base: dict[str, Any]) -> dict[str, Any]:
    snapshot = copy.deepcopy(base)
    snapshot["simulated"] = SIMULATED
    machine = snapshot["machine"]
    machine["host"]["facts"]["hostname"] = name
    for probe in ("nvml", "nvidia_smi") if _OF.get(name) != "driver-update" else ():
        for gpu in machine[probe]["facts"]["gpus"]:
            gpu["vbios"] = _VBIOS
    for run in machine.get("micro_kernels", {}).get("facts", {}).get("runs", ()):
        gpu = f"{name} {run['index']}"
        _at_clock(run, _SLOW.get(gpu, 1.0) * (1 + _SPREAD * _noise(gpu)))
    return snapshot


def _noise(seed: str) -> float:
    """Between -1 and 1, the same for the same words."""
    return zlib.crc32(seed.encode()) / (1 << 31) - 1


def _at_clock(run: dict[str, Any], factor: float) -> None:
    """The micro-kernels of one GPU, had its clock been so much higher under load."""
    for mode in run["modes"]:
        for figure in ("tflops", "fp32_tflops", "clock_mhz"):
            if figure in mode["rate"]:
                mode["rate"][figure] *= factor
