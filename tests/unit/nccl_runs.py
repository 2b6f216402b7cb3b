"""Runs of NCCL between GPUs, as a Snapshot has them: for tests of its checks."""

from __future__ import annotations

from typing import Any

import build
import h100

from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial, Value
from envcheck.facts.gpu import Gpu, NvLink
from envcheck.facts.snapshot import Snapshot

ADDRESSES = [f"0000:{number:02x}:00.0" for number in range(1, 9)]


def gpus(name: str, number: int, links: int = 0, **changes: Any) -> list[Gpu]:
    """GPUs of this name, each with so many NVLinks up."""
    up = [NvLink(link=link, active=True) for link in range(links)]
    return [
        h100.gpu(place, **{"name": name, "nvlinks": up, "pci_address": ADDRESSES[place], **changes})
        for place in range(number)
    ]


def trial(
    name: str = "all-reduce",
    outcome: Any = "ok",
    reason: str = "",
    control: bool = False,
    **evidence: Value | None,
) -> SystemTrial:
    """A trial between eight ranks whose sums are right, unless evidence says otherwise (None: has none)."""
    values: dict[str, Value | None] = {"ranks": 8, "version": "2.27.3", "built_cuda": "12.9"}
    if outcome == "ok":
        values |= {"compared": 8 * 3 << 20, "wrong": 0, "algorithm": "Ring"}
        values |= {"transports": ["P2P/CUMEM"]}
    kept = {key: value for key, value in (values | evidence).items() if value is not None}
    return SystemTrial(name=name, outcome=outcome, reason=reason, control=control, evidence=kept)


def alone(own: int = 8, outcome: Any = "ok", reason: str = "") -> SystemTrial:
    """The control."""
    evidence: dict[str, Value] = {"ranks": 1, "own_numbers": own}
    return SystemTrial(
        name="one rank", control=True, outcome=outcome, reason=reason, evidence=evidence
    )


def machine(
    *trials: SystemTrial,
    on: list[Gpu] | None = None,
    run: dict[str, Any] | None = None,
    **more: Any,
) -> Snapshot:
    """A machine with these GPUs (eight H200 on NVSwitches where none are named) on which NCCL ran so."""
    there = gpus("NVIDIA H200", 8, 18) if on is None else on
    facts: dict[str, Any] = {"outcome": "ok", "trials": list(trials)}
    facts |= {"gpus": [gpu.pci_address for gpu in there], **(run or {})}
    ran = Acceleration(systems=["nccl"], runs=[SystemRun(system="nccl", **facts)])
    target = build.document("/venv", acceleration=ran)
    sections = h100.sections(there) | {"acceleration": Acceleration(systems=[])} | more
    return build.snapshot(target, **sections)
