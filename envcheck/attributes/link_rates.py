"""Rates of a GPU's memory, of its links, of copies between GPUs and of NCCL, as the deep level found them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..facts.acceleration import SystemRun, SystemTrial
from ..facts.base import Unavailable, known
from ..facts.snapshot import Document
from ..facts.view import SnapshotView
from .model import Measurement

_BUS = re.compile(r"bus_(\d{1,6})_mib")
_PAIR = re.compile(r"directly ([0-9A-Fa-f:.]{4,32}) to ([0-9A-Fa-f:.]{4,32})")
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


def _rate(
    trial: SystemTrial, key: str, words: str, value: float, under: list[str], device: str = ""
) -> Measurement:
    """The trials have the 90th over the 10th percentile as their spread, and the size of a copy."""
    apart, size = _number(trial, "spread"), _number(trial, "MiB")
    under = [*under, "" if size is None else f"{size:g} MiB"]
    return Measurement(
        key=key,
        words=words,
        value=value,
        unit="GB/s",
        device=device,
        spread=None if apart is None or not 1 <= apart < 1e6 else apart - 1,
        under=", ".join(filter(None, under)),
    )


def _one_gpu(run: SystemRun, device: str) -> Iterator[Measurement]:
    instance = ""
    for trial in run.trials:
        if trial.name == "device":
            instance = "a MIG instance" if trial.evidence.get("instance") is True else ""
        value = _number(trial, "GB/s")
        if value is None or trial.outcome != "ok" or trial.control:
            continue
        if run.system == "memory":
            key, words = f"memory.{trial.name}", _MEMORY.get(trial.name, trial.name[:60])
        else:
            key, words = f"links.{trial.name.replace(' ', '_')[:60]}", f"copies, {trial.name[:60]}"
        yield _rate(trial, key, words, value, [instance], device)


def _levels(view: SnapshotView) -> Mapping[tuple[str, str], str]:
    """{two addresses: how they reach each other}, both ways round."""
    probe = view.machine.nvml
    pairs = None if probe is None or probe.facts is None else known(probe.facts.pairs)
    found = {}
    for pair in pairs or []:
        if not isinstance(pair.level, Unavailable):
            found[pair.first, pair.second] = found[pair.second, pair.first] = pair.level
    return found


def _peers(
    run: SystemRun, called: Mapping[str, str], levels: Mapping[tuple[str, str], str]
) -> Iterator[Measurement]:
    for trial in run.trials:
        pair, value = _PAIR.fullmatch(trial.name), _number(trial, "GB/s")
        if pair is None or value is None or trial.outcome != "ok" or _number(trial, "wrong"):
            continue
        first, second = pair.groups()
        device = f"{called.get(first, first)} to {called.get(second, second)}"
        under = [levels.get((first, second), "")]
        words = "copies to another GPU, directly"
        yield _rate(trial, "peers.directly", words, value, under, device)


def _nccl(run: SystemRun) -> Iterator[Measurement]:
    """Of the all-reduce with everything that NCCL chooses itself, where its sums were right."""
    for trial in run.trials:
        if trial.name != "all-reduce" or trial.outcome != "ok" or trial.evidence.get("wrong") != 0:
            continue
        version, ranks = trial.evidence.get("version"), _number(trial, "ranks")
        under = [f"NCCL {version[:200]}" if isinstance(version, str) and version else ""]
        under += [f"{ranks:g} GPUs" if ranks else ""]
        for name in trial.evidence:
            size, value = _BUS.fullmatch(name), _number(trial, name)
            if size is not None and value is not None:
                mib = int(size[1])
                words = f"NCCL's bus bandwidth with {mib} MiB"
                yield _rate(trial, f"nccl.all_reduce.{mib}MiB", words, value, under)
