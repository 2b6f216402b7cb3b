"""What the checks on a soak share: its GPUs as subjects, times, rates over the minutes, peers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any, NamedTuple

from ...facts.soak import Soak, SoakGpu, SoakMinute
from ...findings.model import SOAK
from ..gpus import together
from ..kernel.events import gpu_at
from ..reading import CannotJudge, CouldNotRun, Gpu, Skip, SnapshotView, facts_of, known
from ..verdicts import (
    Cause,
    Evidence,
    Finding,
    Param,
    Subject,
    Verdict,
    Verdicts,
    check,
    gpu_subject,
    unjudged,
    word,
)

_WHOLE = 0.5  # of the usual minute: a shorter one is the last, and no figure


class Soaked(NamedTuple):
    """One GPU of a soak that computed something."""

    gpu: SoakGpu
    place: int  # in the soak's list
    subject: Subject

    @property
    def called(self) -> str:
        return self.subject.text

    @property
    def selected(self) -> str:
        """As nvidia-smi's -i takes it, quoted."""
        index = self.subject.index
        return word(self.subject.address or ("0" if index is None else str(index)))

    def listed(self, view: SnapshotView) -> Gpu | None:
        """The GPU as the driver lists it."""
        return gpu_at(view, self.subject.address)

    @property
    def samples(self) -> int:
        return sum(minute.samples for minute in self.gpu.minutes)

    def need_samples(self, what: str) -> None:
        """Raises CouldNotRun where fewer than half of the minutes in which it computed were sampled."""
        worked = [minute for minute in self.gpu.minutes if minute.products]
        sampled = [minute for minute in worked if minute.samples]
        if not self.samples or not self.gpu.errors_after or 2 * len(sampled) < len(worked):
            why = self.gpu.no_samples or self.gpu.reason or "NVML was not sampled"
            raise CouldNotRun(f"{what}: {why}")

    def evidence(self, view: SnapshotView, field: str, value: object) -> Evidence:
        return view.evidence(f"machine.soak.gpus[{self.place}].{field}", value)

    def found(self, cause: Cause, evidence: Sequence[Evidence], **params: Param) -> Finding:
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
    gpus = soak_of(view).gpus
    found = [
        Soaked(gpu, place, gpu_subject(Gpu(index=gpu.index, name=gpu.name, pci_address=gpu.gpu)))
        for place, gpu in enumerate(gpus)
        if gpu.outcome not in ("busy", "not-run")
    ]
    if not found:
        raise Skip("no GPU was free for the soak")
    return found


Judge = Callable[[SnapshotView, Soaked], Iterable[Verdict]]


def soak_check(code: str, **texts: Any) -> Callable[[Judge], Judge]:
    """Register a judge of one GPU as a check on all; a missing fact leaves that GPU unjudged."""

    def register(judge: Judge) -> Judge:
        def verdicts(view: SnapshotView) -> Verdicts:
            for one in soaked(view):
                try:
                    yield from judge(view, one)
                except CannotJudge as why:
                    yield unjudged(why, [one.subject])

        @wraps(judge)
        def of_all(view: SnapshotView) -> Verdicts:
            return together(verdicts(view))

        check(code, **texts)(of_all)
        return judge

    return register


def whole_minutes(gpu: SoakGpu) -> list[SoakMinute]:
    """Without the last piece of one, in which the rate is nobody's."""
    usual = max((minute.seconds for minute in gpu.minutes), default=0.0)
    ended = gpu.ended
    return [
        minute
        for minute in gpu.minutes
        if minute.seconds >= _WHOLE * usual
        and (ended is None or minute.began + minute.seconds <= ended)
    ]


def rates(gpu: SoakGpu) -> list[float]:
    return [minute.tflops for minute in whole_minutes(gpu) if minute.tflops is not None]


def mean_rate(gpu: SoakGpu) -> float | None:
    found = rates(gpu)
    return statistics.median(found) if found else None


def most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def throttled(gpu: SoakGpu) -> dict[str, float] | None:
    """Reason for held-down clocks: the share of the samples that had it; None where none was read."""
    read = sum(minute.reason_samples for minute in gpu.minutes)
    if not read:
        return None
    found: dict[str, float] = {}
    for minute in gpu.minutes:
        for name, share in minute.throttled.items():
            found[name] = found.get(name, 0.0) + share * minute.reason_samples / read
    return found


class Apart(NamedTuple):
    """A GPU whose value is away from its peers' median."""

    one: Soaked
    value: float
    usual: float
    mads: float  # median absolute deviations, scaled; infinite where its peers are equal
    peers: int


def apart(gpus: list[Soaked]) -> Iterator[Apart]:
    """The rate of each GPU that has another of its name, beside the median of the others."""
    for one in gpus:
        mine = mean_rate(one.gpu)
        others = [
            rate
            for other in gpus
            if other is not one
            and known(other.gpu.name) == known(one.gpu.name)
            and (other.gpu.level, other.gpu.mode) == (one.gpu.level, one.gpu.mode)
            and (rate := mean_rate(other.gpu)) is not None
        ]
        if mine is None or not others:
            continue
        usual = statistics.median(others)
        deviation = 1.4826 * statistics.median(abs(other - usual) for other in others)
        mads = abs(mine - usual) / deviation if deviation else float("inf")
        yield Apart(one, mine, usual, mads, len(others))


def after(seconds: float | None) -> str:
    """ "after 2 h 10 min" """
    if seconds is None:
        return "at an unknown time"
    whole = round(seconds)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min")]
    words = [f"{number} {unit}" for number, unit in parts if number]
    return f"after {' '.join(words) if words else f'{whole} s'}"
