"""What the checks on memory and links share: the GPU of a run, its trials' rates, its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from ...facts.acceleration import SystemTrial
from ..acceleration.common import Seen, died, each_run, failed, number
from ..driver_state import on_wsl
from ..gpus import address_of
from ..peer_groups import is_vgpu
from ..reading import CannotJudge, CouldNotRun, Gpu, SnapshotView, known
from ..verdicts import (
    Cause,
    Evidence,
    Finding,
    Param,
    Subject,
    Unjudged,
    Verdicts,
    about_device_at,
    about_gpu,
)

ABSENT = "no GPU was looked at"


class Measured:
    """One run of "memory" or "links" on one GPU."""

    def __init__(self, view: SnapshotView, seen: Seen) -> None:
        self.view = view
        self.seen = seen
        self.address = next(iter(seen.run.gpus), "")
        self.gpu = gpu_at(view, self.address)

    @property
    def subjects(self) -> list[Subject]:
        return subjects(self.gpu, self.address)

    @property
    def name(self) -> str:
        """The product's, as the driver says it; "" where it does not."""
        return (known(self.gpu.name) or "") if self.gpu else ""

    @property
    def called(self) -> str:
        return called(self.gpu, self.address)

    @property
    def own_address(self) -> str:
        """For `nvidia-smi -i`."""
        return address_of(self.gpu) if self.gpu else (self.address or "0")

    @property
    def instance(self) -> bool:
        """Whether it ran on a MIG instance, which has a share of the GPU."""
        device = self.seen.trial("device")
        told = device is not None and device.evidence.get("instance") is True
        return told or (self.gpu is not None and known(self.gpu.mig_enabled) is True)

    @property
    def shared(self) -> str:
        """Why its rates are held against nothing; "" where they can be."""
        if self.instance:
            return "a MIG instance"
        if self.gpu is not None and is_vgpu(self.gpu):
            return "a vGPU"
        if on_wsl(self.view):
            return "WSL"
        return "memory shared with the host" if self.told("device", "integrated") else ""

    def found(
        self,
        cause: Cause,
        trials: Iterable[SystemTrial | None],
        evidence: Iterable[Evidence] = (),
        **params: Param,
    ) -> Finding:
        """The cause, on this GPU. "{gpu}" is its name in sentences, and its address in commands."""
        return cause.found(
            self.subjects,
            [*self.seen.evidence(*trials), *evidence],
            commands=[one.format(**{**params, "gpu": self.own_address}) for one in cause.commands],
            advice=None,
            gpu=self.called,
            **params,
        )

    def told(self, trial: str, name: str) -> float:
        return number(self.seen.trial(trial), name)

    def rate(self, trial: str) -> float | None:
        """GB/s of a trial that ran; None where it did not."""
        found = self.seen.trial(trial)
        rate = number(found, "GB/s") if found is not None and found.outcome == "ok" else 0
        return rate or None

    def why_not(self, trial: str) -> Unjudged:
        """A trial that says nothing."""
        ended = died(self.seen)
        return Unjudged(
            "could-not-run",
            f"{self.called}: {failed(self.seen, ended or self.seen.trial(trial))}",
            self.subjects,
        )


def each_gpu_run(
    view: SnapshotView, system: str, judge: Callable[[Measured], Verdicts]
) -> Verdicts:
    """What ``judge`` says of each GPU's run of that system, and of those that did not come to trials."""

    def of_run(seen: Seen) -> Verdicts:
        measured = Measured(view, seen)
        try:
            yield from judge(measured)
        except CouldNotRun as why:
            yield Unjudged("could-not-run", f"{measured.called}: {why}", measured.subjects)

    yield from each_run(view, system, of_run, document=view.machine, absent=ABSENT)


def called(gpu: Gpu | None, address: str) -> str:
    """ "GPU 0", or by its address."""
    index = known(gpu.index) if gpu is not None else None
    return f"GPU {address}" if index is None else f"GPU {index}"


def subjects(gpu: Gpu | None, address: str) -> list[Subject]:
    return about_gpu(gpu) if gpu is not None else about_device_at("gpu", address)


def gpu_at(view: SnapshotView, address: str) -> Gpu | None:
    """The GPU at a PCI address; None where the driver's own list does not have it."""
    try:
        gpus = view.gpus
    except CannotJudge:
        return None
    return next((gpu for gpu in gpus if address and known(gpu.pci_address) == address), None)


def usual(of: Measured, others: list[tuple[Measured, float]]) -> tuple[float, int] | None:
    """(median of its peers' figures, how many): other GPUs of its name, at least two; else None."""
    peers = [rate for one, rate in others if one is not of and one.name and one.name == of.name]
    return (median(peers), len(peers)) if len(peers) > 1 else None


def gb_s(rate: float) -> str:
    """ "2,610 GB/s", "25.1 GB/s" """
    return f"{rate:,.0f} GB/s" if rate >= 100 else f"{rate:.1f} GB/s"


def spread_of(rates: list[float]) -> str:
    """ "2,598 to 2,610 GB/s", or the one figure where all are told alike."""
    low, high = gb_s(min(rates)), gb_s(max(rates))
    return low if low == high else f"{low.removesuffix(' GB/s')} to {high}"


def trials_named(seen: Seen, prefix: str) -> list[SystemTrial]:
    return [one for one in seen.run.trials if one.name.startswith(prefix)]


def words_of(trial: SystemTrial, name: str) -> str:
    """A word or words of a trial's evidence, on one line."""
    value = trial.evidence.get(name, "")
    return ", ".join(value) if isinstance(value, list) else str(value)


def words(count: float) -> str:
    """ "1 word", "3 words" """
    return f"{count:,.0f} {'word' if count == 1 else 'words'}"
