"""The doctor looks at a new version: is anything wrong with it that was not wrong before?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from .. import collection
from ..checks.engine import diagnose
from ..collection import Collected, Kernels
from ..exit_codes import EnvcheckError
from ..facts import snapshot as snapshots
from ..facts.snapshot import Snapshot
from ..findings.model import CheckResult, Diagnosis
from ..reports import json_report
from ..reports.model import build
from .transaction.interfaces import Verdict
from .transaction.record import Health

# How a target is looked at: ``collection.collect``, as the doctor calls it.
Look = Callable[[Path], Collected]


class DoctorVerifier:
    """Verifies as `envcheck doctor --target` would, with the machine's micro-kernels.

    must_pass: codes without which the stack is not installed. allow_no_gpu: what could not be judged for
    want of a GPU is no reason against it. environment: what activation sets, and so the doctor too.
    look: instead of the collector's look at an environment of wheels; it gets the new version's directory,
    and that of the one in use, which may be of the other mode.
    """

    def __init__(
        self,
        *,
        must_pass: Sequence[str] = (),
        allow_no_gpu: bool = False,
        environment: Mapping[str, str] | None = None,
        kernels: Kernels | None = None,
        deadline: float | None = None,
        progress: collection.Progress | None = None,
        look: Look | None = None,
    ) -> None:
        self._must_pass = list(must_pass)
        self._allow_no_gpu = allow_no_gpu
        self._environment = dict(environment or {})
        self._kernels = Kernels() if kernels is None else kernels
        self._deadline = deadline
        self._progress = progress
        self._look = look or self._collect

    def verify(self, directory: Path, old: Path | None) -> Verdict:
        """Judge the version in ``directory``. Raises CouldNotLook where the collector does not answer."""
        with _set(self._environment):
            collected = self._look(directory)
        diagnosis = diagnose(collected.snapshot)
        before = _failing(_machine_alone(collected.snapshot))
        failing = [result for result in diagnosis.results if result.outcome == "fail"]
        # Whoever asks the old one pays for it: a framework is imported once more, and kernels run.
        if old is not None and any(result.code not in before for result in failing):
            before |= self._failing_in(old)
        needed = [result for result in diagnosis.results if result.code in self._must_pass]
        unproven = [result for result in needed if result.outcome != "pass"]
        excused = [result for result in unproven if self._is_excused(result, before)]
        against = [result for result in failing if result.code not in before]
        against += [r for r in unproven if r not in excused and r not in against]
        return Verdict(
            health=Health(
                verdict=build(collected.snapshot, diagnosis).verdict,
                failing=[result.code for result in failing if result not in against],
                unproven=[result.code for result in excused],
            ),
            failures=[collected.restore(_sentence(result)) for result in against],
            report=json_report.render(build(collected.snapshot, diagnosis)).encode(),
            snapshot=snapshots.dump(collected.snapshot),
        )

    def _is_excused(self, result: CheckResult, before: set[str]) -> bool:
        """Whether it cannot be proven here for want of a GPU, which the user has allowed."""
        if not self._allow_no_gpu or result.outcome not in ("skipped", "could-not-run"):
            return False
        return result.consequence_of in before or result.code in _OF_GPUS

    def _failing_in(self, old: Path) -> set[str]:
        try:
            return _failing(diagnose(self._look(old).snapshot))
        except EnvcheckError:
            return set()  # it is broken beyond looking: no excuse for the new one

    def _collect(self, directory: Path) -> Collected:
        return collection.collect(
            str(directory),
            deadline=self._deadline,
            kernels=self._kernels,
            progress=self._progress,
        )


# Checks that ask what a framework does with a GPU: "skipped" where there is none.
_OF_GPUS = ("FRM-002", "FRM-003", "FRM-004")


def _machine_alone(snapshot: Snapshot) -> Diagnosis:
    return diagnose(msgspec.structs.replace(snapshot, target=None))


def _failing(diagnosis: Diagnosis) -> set[str]:
    return {result.code for result in diagnosis.results if result.outcome == "fail"}


def _sentence(result: CheckResult) -> str:
    """ "FRM-001: tensorflow does not import: …" """
    if result.findings:
        return f"{result.code}: {result.findings[0].message}"
    why = result.reason or f"the check's outcome is {result.outcome}"
    return f"{result.code} ({result.title}) is not proven: {why}"


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """These variables in the environment that the collector gets."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
