"""What the checks on acceleration systems share: their runs, and the reason where one did not run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...facts.acceleration import SystemRun, SystemTrial, Value
from ...facts.snapshot import Document
from ...findings.model import DEEPER
from ..driver_state import NO_GPUS_THERE
from ..reading import FRAMEWORKS, CannotJudge, Skip, SnapshotView, facts_of, known, show
from ..verdicts import Cause, Evidence, Finding, Subject, Unjudged, Verdicts, about, unjudged

# Failures that explain why a system could not run, or did nothing.
NOTHING_RUNS = (*NO_GPUS_THERE, "DRV-004", "DRV-010")
# Of a system that runs on the CPU where there is no GPU: that explains nothing of it.
NO_IMPORT = ("FRM-001", "FRM-007")

_MOST = 1e30  # above any count and rate: a Snapshot may come from anybody


class Seen(NamedTuple):
    """One SystemRun, with its place in the Snapshot."""

    run: SystemRun
    path: str

    @property
    def title(self) -> str:
        """ "TensorFlow 2.15.1"; "" where it belongs to no framework."""
        name = FRAMEWORKS.get(self.run.framework, "")
        return f"{name} {self.version}".strip()

    @property
    def version(self) -> str:
        return known(self.run.framework_version) or ""

    @property
    def where(self) -> str:
        return ", on the CPU" if self.run.device == "cpu" else ""

    @property
    def subjects(self) -> list[Subject]:
        return about("framework", FRAMEWORKS[self.run.framework]) if self.run.framework else []

    @property
    def controls(self) -> list[SystemTrial]:
        return [one for one in self.run.trials if one.control]

    def trial(self, name: str) -> SystemTrial | None:
        return next((one for one in self.run.trials if one.name == name), None)

    def evidence(self, *trials: SystemTrial | None) -> list[Evidence]:
        """A line for each of these trials; for all where none is named."""
        return [
            Evidence(f"{self.path}.trials[{place}]", one_line(one), "the system, run")
            for place, one in enumerate(self.run.trials)
            if not trials or one in trials
        ]

    def found(
        self,
        cause: Cause,
        *trials: SystemTrial | None,
        more: Sequence[Evidence] = (),
        **params: Any,
    ) -> Finding:
        """The cause, found in this run; trials: its evidence, all where none is named."""
        evidence = [*self.evidence(*trials), *more]
        given = {"title": self.title, "where": self.where, **params}
        return cause.found(self.subjects, evidence, **given)

    def unjudged(self, why: str) -> Unjudged:
        return Unjudged("could-not-run", self._titled(why), self.subjects)

    def not_applicable(self, why: str) -> Unjudged:
        return Unjudged("skipped", f"not applicable: {self._titled(why)}", self.subjects)

    def _titled(self, why: str) -> str:
        return f"{self.title}: {why}" if self.title else why

    def logged(self, *wanted: str) -> list[Evidence]:
        """The first line of its log that has one of these words in it."""
        for line in self.run.log:
            if any(word.lower() in line.lower() for word in wanted):
                return [Evidence(f"{self.path}.log", line, "its standard error")]
        return []


def number(trial: SystemTrial | None, name: str) -> float:
    """A count or a rate of a trial's evidence; 0 where it has none that can be one."""
    value = None if trial is None else trial.evidence.get(name)
    return value if isinstance(value, (int, float)) and -_MOST < value < _MOST else 0


def words(trial: SystemTrial | None, name: str) -> list[str]:
    value = None if trial is None else trial.evidence.get(name)
    return value if isinstance(value, list) else []


def text(trial: SystemTrial | None, name: str) -> str:
    value = None if trial is None else trial.evidence.get(name)
    return value if isinstance(value, str) else ""


def ok(trial: SystemTrial | None) -> bool:
    return trial is not None and trial.outcome == "ok"


def one_line(trial: SystemTrial) -> str:
    """A trial on one line: "jit_compile: modules 1", "off (control): modules 0"."""
    name = f"{trial.name} (control)" if trial.control else trial.name
    parts = [f"{key.replace('_', ' ')} {_shown(value)}" for key, value in trial.evidence.items()]
    if trial.outcome != "ok":
        parts.insert(0, f"{trial.outcome}: {trial.reason}" if trial.reason else trial.outcome)
    return f"{name}: {', '.join(parts) or 'ran'}"


def _shown(value: Value) -> str:
    if not isinstance(value, float):
        return show(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e9 else f"{value:.4g}"


def each_run(
    view: SnapshotView,
    system: str,
    judge: Callable[[Seen], Iterable[Any]],
    document: Document | None = None,
    absent: str = "no framework in the target has it",
    framework: str = "",
) -> Verdicts:
    """What ``judge`` says of each run of that system that came to its trials; of the others, why not.

    document: the target's, where no other is named. framework: its runs alone. Raises Skip where it was not
    asked for, or nothing has it (``absent``).
    """
    if view.machine.acceleration is None:
        raise Skip(DEEPER)
    place = document if document is not None else view.target
    if place.acceleration is None:
        raise Skip(DEEPER)
    facts = facts_of(place.acceleration, "the acceleration systems")
    if system not in facts.systems:
        raise Skip(DEEPER)
    name = "machine" if place is view.machine else "target"
    found = [
        Seen(run, f"{name}.acceleration.runs[{index}]")
        for index, run in enumerate(facts.runs)
        if run.system == system and framework in ("", run.framework)
    ]
    if not found:
        raise Skip(f"not applicable: {absent}")
    for seen in found:
        if seen.run.outcome == "not-applicable":
            yield seen.not_applicable(seen.run.reason)
        elif seen.run.outcome != "ok" and not seen.run.trials:
            yield seen.unjudged(seen.run.reason or seen.run.outcome)
        else:
            try:
                yield from judge(seen)
            except CannotJudge as why:
                yield unjudged(why, seen.subjects)


def died(seen: Seen) -> SystemTrial | None:
    """The trial that ended its process, or gave no answer."""
    return next((one for one in seen.run.trials if one.outcome in ("timeout", "crashed")), None)


def failed(seen: Seen, trial: SystemTrial | None) -> str:
    """Why a trial is missing or not "ok"."""
    if trial is None:
        return seen.run.reason or "it was not reached"
    return trial.reason or trial.outcome
