"""What the checks on a soak share: its GPUs as subjects, times, rates over the minutes."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from ...facts.soak import Soak, SoakGpu, SoakMinute
from ...findings.model import SOAK
from ..gpus import together
from ..kernel.events import gpu_at
from ..reading import CannotJudge, CouldNotRun, Gpu, Skip, SnapshotView, facts_of
from ..verdicts import (
    Cause,
    Evidence,
    Finding,
    Param,
    Passed,
    Subject,
    Verdicts,
    check,
    gpu_subject,
    unjudged,
    word,
)

_WHOLE = 0.5  # of the usual minute: a shorter one is the last, and no figure


class Soaked(NamedTuple):
    """One GPU of a soak that computed something. place: in the soak's list."""

    gpu: SoakGpu
    place: int
    subject: Subject

    @property
    def selected(self) -> str:
        """As nvidia-smi's -i takes it, quoted."""
        index = self.subject.index
        return word(self.subject.address or ("0" if index is None else str(index)))

    def listed(self, view: SnapshotView) -> Gpu | None:
        """The GPU as the driver lists it."""
        return gpu_at(view, self.subject.address)

    def need_samples(self, what: str) -> None:
        """Raises CouldNotRun where fewer than half of the minutes in which it computed were sampled."""
        worked = [minute for minute in self.gpu.minutes if minute.products]
        sampled = [minute for minute in worked if minute.samples]
        any_samples = any(minute.samples for minute in self.gpu.minutes)
        if not any_samples or not self.gpu.errors_after or 2 * len(sampled) < len(worked):
            why = self.gpu.no_samples or self.gpu.reason or "NVML was not sampled"
            raise CouldNotRun(f"{what}: {why}")

    def grown(self, name: str) -> float:
        """By how much a counter grew from the soak's begin to its end; 0 where it was not read twice."""
        first, last = self.gpu.errors_before.get(name), self.gpu.errors_after.get(name)
        return 0.0 if first is None or last is None else max(0.0, last - first)

    def evidence(self, view: SnapshotView, field: str, value: object) -> Evidence:
        return view.evidence(f"machine.soak.gpus[{self.place}].{field}", value)

    def found(self, cause: Cause, *evidence: Evidence, **params: Param) -> Finding:
        """The cause, on this GPU; "{gpu}" in its commands is what `nvidia-smi -i` takes."""
        commands = [one.format(gpu=self.selected) for one in cause.commands]
        return cause.found([self.subject], evidence, commands=commands, advice=None, **params)


def soak_of(view: SnapshotView) -> Soak:
    """Raises Skip where no soak was run."""
    if view.machine.soak is None:
        raise Skip(SOAK)
    return facts_of(view.machine.soak, "the soak")


def soaked(view: SnapshotView) -> list[Soaked]:
    """The GPUs that computed; raises Skip where there are none."""
    found = [
        Soaked(gpu, place, gpu_subject(Gpu(index=gpu.index, name=gpu.name, pci_address=gpu.gpu)))
        for place, gpu in enumerate(soak_of(view).gpus)
        if gpu.outcome not in ("busy", "not-run")
    ]
    if not found:
        raise Skip("no GPU was free for the soak")
    return found


Judge = Callable[[SnapshotView, Soaked], "Finding | str"]


def soak_check(code: str, **texts: Any) -> Callable[[Judge], Judge]:
    """Register a judge of one GPU as a check on all: it returns a Finding, or the detail of a pass."""

    def register(judge: Judge) -> Judge:
        def verdicts(view: SnapshotView) -> Verdicts:
            for one in soaked(view):
                try:
                    found = judge(view, one)
                    yield Passed(found) if isinstance(found, str) else found
                except CannotJudge as why:
                    yield unjudged(why, [one.subject])

        @wraps(judge)
        def of_all(view: SnapshotView) -> Verdicts:
            return together(verdicts(view))

        check(code, **texts)(of_all)
        return judge

    return register


def whole_minutes(gpu: SoakGpu) -> list[SoakMinute]:
    """Without the last piece of one, which has no rate."""
    usual = max((minute.seconds for minute in gpu.minutes), default=0.0)
    end = float("inf") if gpu.ended is None else gpu.ended
    return [
        minute
        for minute in gpu.minutes
        if minute.seconds >= _WHOLE * usual and minute.began + minute.seconds <= end
    ]


def rates(gpu: SoakGpu) -> list[float]:
    return [minute.tflops for minute in whole_minutes(gpu) if minute.tflops is not None]


def median_rate(gpu: SoakGpu) -> float | None:
    found = rates(gpu)
    return statistics.median(found) if found else None


def after(seconds: float | None) -> str:
    """ "after 2 h 10 min" """
    if seconds is None:
        return "at an unknown time"
    whole = round(seconds)
    parts = ((whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"))
    words = [f"{number} {unit}" for number, unit in parts if number]
    return f"after {' '.join(words) if words else f'{whole} s'}"
