"""Checks on XLA: modules that were compiled and ran, in each framework that has it."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Verdict
from ..registry import check
from .common import NO_FRAMEWORK, Seen, each_run, failed, number


@check(
    "ACC-007",
    title="XLA",
    problem="XLA is on and compiles nothing",
    about="to be written",
    sources=("acceleration.md",),
    follows=NO_FRAMEWORK,
    systems=("xla",),
)
def xla_compiles(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        on = [one for one in seen.run.trials if not one.control]
        engaged = [one for one in on if one.outcome == "ok" and number(one, "modules") > 0]
        if engaged:
            names = ", ".join(one.name for one in engaged)
            yield Passed(f"{seen.title}: {names}{seen.where}")
            return
        yield Finding(
            "fail",
            f"XLA in {seen.title} compiles nothing: {failed(seen, on[0] if on else None)}.",
            seen.subjects,
            seen.evidence(),
        )

    yield from each_run(view, "xla", judge, absent="the target has neither TensorFlow nor JAX")
