"""Rates of a GPU's memory, of its links, of copies between GPUs and of NCCL, as the deep level found them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..facts.acceleration import SystemRun, SystemTrial
from ..facts.base import Unavailable, known
from ..facts.gpu import GpuPair
from ..facts.snapshot import Document
from ..facts.view import SnapshotView
from .model import Measurement

_GB_S = "GB/s"
_BUS = re.compile(r"bus_(\d{1,6})_mib")
_PAIR = re.compile(r"(directly|by way of the host) ([0-9A-Fa-f:.]{4,32}) to ([0-9A-Fa-f:.]{4,32})")
_MEMORY = {"copy": "copies within the memory", "read": "reads of the memory"}


def link_rates(
    view: SnapshotView, document: Document, called: Mapping[str, str]
) -> Iterator[Measurement]:
    """called: {a GPU's address: "GPU 3"}."""
    probe = document.acceleration
    facts = None if probe is None else probe.facts
    for run in [] if facts is None else facts.runs:
        if run.outcome != "ok":
            continue
        if run.system in ("memory", "links") and len(run.gpus) == 1:
            yield from _one_gpu(run, called.get(run.gpus[0], run.gpus[0]))
        elif run.system == "peers":
            yield from _peers(run, called, _levels(view))
        elif run.system == "nccl":
            yield from _nccl(run)


def _number(trial: SystemTrial, name: str) -> float | None:
    value = trial.evidence.get(name)
    return float(value) if isinstance(value, (int, float)) and value is not True else None


def _text(trial: SystemTrial, name: str) -> str:
    value = trial.evidence.get(name)
    return value[:200] if isinstance(value, str) else ""


def _spread(trial: SystemTrial) -> float | None:
    """The trials tell the 90th over the 10th percentile."""
    apart = _number(trial, "spread")
    return None if apart is None or not 1 <= apart < 1e6 else apart - 1


def _one_gpu(run: SystemRun, device: str) -> Iterator[Measurement]:
    instance = ""
    for trial in run.trials:
        if trial.name == "device":
            instance = "a MIG instance" if trial.evidence.get("instance") is True else ""
        value = _number(trial, _GB_S)
        if value is None or trial.outcome != "ok" or trial.control:
            continue
        key, words = _named(run.system, trial.name)
        size = _number(trial, "MiB")
        under = [instance, "" if size is None else f"{size:g} MiB"]
        yield Measurement(
            key=key,
            words=words,
            value=value,
            unit=_GB_S,
            device=device,
            spread=_spread(trial),
            under=", ".join(filter(None, under)),
        )


def _named(system: str, trial: str) -> tuple[str, str]:
    """A figure's key and its words."""
    if system == "memory":
        return f"memory.{trial}", _MEMORY.get(trial, trial[:60])
    return f"links.{trial.replace(' ', '_')[:60]}", f"copies, {trial[:60]}"


def _levels(view: SnapshotView) -> Mapping[tuple[str, str], str]:
    """{two addresses: how they reach each other}, both ways round."""
    probe = view.machine.nvml
    pairs: list[GpuPair] | None = (
        None if probe is None or probe.facts is None else known(probe.facts.pairs)
    )
    found = {}
    for pair in pairs or []:
        if not isinstance(pair.level, Unavailable):
            found[pair.first, pair.second] = found[pair.second, pair.first] = pair.level
    return found


def _peers(
    run: SystemRun, called: Mapping[str, str], levels: Mapping[tuple[str, str], str]
) -> Iterator[Measurement]:
    for trial in run.trials:
        pair, value = _PAIR.fullmatch(trial.name), _number(trial, _GB_S)
        if pair is None or value is None or trial.outcome != "ok" or _number(trial, "wrong"):
            continue
        way, first, second = pair.groups()
        size = _number(trial, "MiB")
        joined = levels.get((first, second), "")
        yield Measurement(
            key="peers.directly" if way == "directly" else "peers.by_host",
            words=f"copies to another GPU, {way}",
            value=value,
            unit=_GB_S,
            device=f"{called.get(first, first)} to {called.get(second, second)}",
            spread=_spread(trial),
            under=", ".join(filter(None, (joined, "" if size is None else f"{size:g} MiB"))),
        )


def _nccl(run: SystemRun) -> Iterator[Measurement]:
    """Of the all-reduce with everything that NCCL chooses itself, where its sums were right."""
    for trial in run.trials:
        if trial.name != "all-reduce" or trial.outcome != "ok" or trial.evidence.get("wrong") != 0:
            continue
        version, ranks = _text(trial, "version"), _number(trial, "ranks")
        under = [f"NCCL {version}" if version else "", f"{ranks:g} GPUs" if ranks else ""]
        for name in trial.evidence:
            size, value = _BUS.fullmatch(name), _number(trial, name)
            if size is not None and value is not None:
                yield Measurement(
                    key=f"nccl.all_reduce.{int(size[1])}MiB",
                    words=f"NCCL's bus bandwidth with {int(size[1])} MiB",
                    value=value,
                    unit=_GB_S,
                    under=", ".join(filter(None, under)),
                )
