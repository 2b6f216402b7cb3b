"""What the checks on memory and links share: the GPU of a run, its trials' rates, its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from ...facts.acceleration import SystemTrial
from ..acceleration.common import Seen, died, each_run, failed, number
from ..driver_state import on_wsl
from ..gpus import address_of
from ..kernel.events import gpu_at, subjects_at
from ..peer_groups import is_vgpu
from ..reading import CouldNotRun, Gpu, SnapshotView, known
from ..verdicts import Cause, Evidence, Finding, Subject, Unjudged, Verdicts

ABSENT = "no GPU was looked at"


class Measured:
    """One run of "memory" or "links" on one GPU. name: the product's, as the driver says it; else ""."""

    def __init__(self, view: SnapshotView, seen: Seen) -> None:
        self.view = view
        self.seen = seen
        self.address = next(iter(seen.run.gpus), "")
        self.gpu = gpu_at(view, self.address)
        self.name = (known(self.gpu.name) or "") if self.gpu else ""
        self.called = called(self.gpu, self.address)

    @property
    def subjects(self) -> list[Subject]:
        return subjects_at(self.view, self.address)

    @property
    def shared(self) -> str:
        """Why its rates are held against nothing; "" where they can be."""
        device = self.seen.trial("device")
        if device is not None and device.evidence.get("instance") is True:
            return "a MIG instance"
        if self.gpu is not None and known(self.gpu.mig_enabled) is True:
            return "a MIG instance"
        if self.gpu is not None and is_vgpu(self.gpu):
            return "a vGPU"
        if on_wsl(self.view):
            return "WSL"
        return "memory shared with the host" if self.value("device", "integrated") else ""

    def found(
        self,
        cause: Cause,
        trials: Iterable[SystemTrial | None],
        evidence: Iterable[Evidence] = (),
        **params: Any,
    ) -> Finding:
        """The cause, on this GPU. "{gpu}" is its name in sentences, and its address in commands."""
        address = address_of(self.gpu) if self.gpu else (self.address or "0")
        commands = [one.format(**{**params, "gpu": address}) for one in cause.commands]
        shown = [*self.seen.evidence(*trials), *evidence]
        return cause.found(self.subjects, shown, commands=commands, gpu=self.called, **params)

    def value(self, trial: str, name: str) -> float:
        return number(self.seen.trial(trial), name)

    def rate(self, trial: str) -> float | None:
        """GB/s of a trial that ran; None where it did not."""
        found = self.seen.trial(trial)
        return (number(found, "GB/s") or None) if found and found.outcome == "ok" else None

    def why_not(self, trial: str) -> Unjudged:
        why = failed(self.seen, died(self.seen) or self.seen.trial(trial))
        return Unjudged("could-not-run", f"{self.called}: {why}", self.subjects)


def each_gpu_run(
    view: SnapshotView, system: str, judge: Callable[[Measured], Verdicts]
) -> Verdicts:
    def of_run(seen: Seen) -> Verdicts:
        measured = Measured(view, seen)
        try:
            yield from judge(measured)
        except CouldNotRun as why:
            yield Unjudged("could-not-run", f"{measured.called}: {why}", measured.subjects)

    yield from each_run(view, system, of_run, document=view.machine, absent=ABSENT)


def called(gpu: Gpu | None, address: str) -> str:
    index = known(gpu.index) if gpu is not None else None
    return f"GPU {address}" if index is None else f"GPU {index}"


def usual(of: Measured, others: list[tuple[Measured, float]]) -> tuple[float, int] | None:
    """(median of its peers' figures, how many): other GPUs of its name, at least two; else None."""
    peers = [rate for one, rate in others if one is not of and one.name and one.name == of.name]
    return (median(peers), len(peers)) if len(peers) > 1 else None


def gb_s(rate: float) -> str:
    """ "2,610 GB/s", "25.1 GB/s" """
    return f"{rate:,.0f} GB/s" if rate >= 100 else f"{rate:.1f} GB/s"


def spread_of(rates: list[float]) -> str:
    """ "2,598 to 2,610 GB/s", or the one figure where all are equal."""
    low, high = gb_s(min(rates)), gb_s(max(rates))
    return low if low == high else f"{low.removesuffix(' GB/s')} to {high}"


def several(runs: list[Measured]) -> str:
    return f"{len(runs)} GPUs: " if len(runs) > 1 else ""


def words_of(trial: SystemTrial | None, name: str) -> str:
    """A word or words of a trial's evidence, on one line."""
    value = trial.evidence.get(name, "") if trial is not None else ""
    return ", ".join(value) if isinstance(value, list) else str(value)


def words(count: float) -> str:
    return f"{count:,.0f} {'word' if count == 1 else 'words'}"
