"""Which rows a request means on this machine: a pure function of the request and the Snapshot."""

from __future__ import annotations

import msgspec

from ..facts.bench import BenchRow, Style
from ..facts.snapshot import Snapshot
from .request import BenchRequest


class LeftOut(msgspec.Struct, frozen=True):
    """What was asked for and is not run, and why."""

    name: str
    reason: str


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[BenchRow] = []
    left_out: list[LeftOut] = []
    seconds: float = 0.0  # that all of it may take, about


def plan(request: BenchRequest, snapshot: Snapshot) -> BenchPlan:
    """The rows; none where the target has no framework that works."""
    rows = [row for style in styles(snapshot) for row in _mlp(style)]
    return BenchPlan(rows=rows, seconds=60.0 * len(rows))


def styles(snapshot: Snapshot) -> list[Style]:
    """How models are written for the frameworks that the target has, and that can be imported."""
    target = snapshot.target
    if target is None:
        return []
    found: list[Style] = []
    for probe in (target.tensorflow, target.torch, target.jax):
        if probe is None or probe.facts is None or probe.facts.imported is not True:
            continue
        version = probe.facts.version
        if probe.facts.name == "torch":
            found.append("torch")
        elif probe.facts.name == "jax":
            found.append("jax")
        else:
            found.append("session" if str(version).startswith("1.") else "keras")
    return found


def _mlp(style: Style) -> list[BenchRow]:
    if style != "torch":
        return []
    return [
        BenchRow(
            name=f"mlp {p}",
            what="mlp",
            model="mlp",
            style=style,
            precision=p,
            batch=64,
            small=True,
            group="mlp",
        )
        for p in ("fp32", "tf32")
    ]
