"""The doctor looks at a new version: is anything wrong with it that was not wrong before?"""

from __future__ import annotations

from pathlib import Path

import msgspec

from .. import json_text
from ..checks.driver_state import NO_GPUS
from ..checks.engine import diagnose
from ..checks.registry import all_checks
from ..facts import snapshot as snapshots
from ..findings.model import CheckResult, Diagnosis
from ..reports.model import build
from .survey import VerifyOptions
from .transaction import record
from .transaction.interfaces import Verification
from .transaction.layout import Version
from .transaction.record import Health

_SLOW = "FRM-007"  # warns of a framework that gave no answer in time


def verify(options: VerifyOptions, directory: Path, old: Path | None) -> Verification:
    """Judge the version in ``directory`` as `envcheck doctor --target` would; old: the one in use.

    Raises CouldNotLook.
    """
    collected = options.look(directory)
    diagnosis = diagnose(collected.snapshot)
    before = _failing(diagnose(msgspec.structs.replace(collected.snapshot, target=None)))
    before |= _failed_in(old)
    failing = [result for result in diagnosis.results if result.outcome == "fail"]
    needed = [result for result in diagnosis.results if result.code in options.must_pass]
    unproven = [result for result in needed if result.outcome != "pass"]
    excused = [
        result for result in unproven if options.allow_no_gpu and _wants_gpus(result, before)
    ]
    against = [result for result in failing if result.code not in before]
    against += [r for r in unproven if r not in excused and r not in against]
    report = build(collected.snapshot, diagnosis)
    return Verification(
        health=Health(
            verdict=report.verdict,
            failing=[result.code for result in failing if result not in against],
            unproven=[result.code for result in excused],
        ),
        failures=[collected.restore(one) for one in _sentences(against, diagnosis)],
        report=json_text.render(report).encode(),
        snapshot=snapshots.dump(collected.snapshot),
    )


def _wants_gpus(result: CheckResult, before: set[str]) -> bool:
    """Whether it could not be proven here for want of a GPU."""
    if result.outcome not in ("skipped", "could-not-run"):
        return False
    return result.consequence_of in before or any(
        check.code == result.code and {*NO_GPUS} <= {*check.follows} for check in all_checks()
    )


def _failed_in(old: Path | None) -> set[str]:
    """What failed in the version in use when it was verified."""
    noted = None if old is None else record.read(Version(old))
    return set() if noted is None else set(noted.health.failing)


def _failing(diagnosis: Diagnosis) -> set[str]:
    return {result.code for result in diagnosis.results if result.outcome == "fail"}


def _sentences(against: list[CheckResult], diagnosis: Diagnosis) -> list[str]:
    """ "FRM-001: tensorflow does not import: …"; of a framework that was too slow, that, and its way out."""
    slow = [one for one in diagnosis.results if one.code == _SLOW and one.outcome == "warn"]
    if slow and not any(result.findings for result in against):
        more = "install --deadline 900 gives it more time"
        return [f"{_SLOW}: {slow[0].findings[0].message.rstrip('.')}; {more}"]
    return [_sentence(result) for result in against]


def _sentence(result: CheckResult) -> str:
    if result.findings:
        return f"{result.code}: {result.findings[0].message}"
    why = result.reason or f"the check's outcome is {result.outcome}"
    return f"{result.code} ({result.title}) is not proven: {why}"
