"""The check on the probes of other packages: did each of them answer."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.evidence import Evidence
from ...facts.missing import Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Verdict
from ...findings.subjects import about
from ..registry import check


@check(
    "PLG-002",
    title="The probes of plug-ins answered",
    problem="a plug-in's probe gave no answer",
    about="A probe that another package adds runs in a process of its own, as envcheck's own do. It may take"
    " too long, crash, or be no probe at all: then what it would have found is missing from this Snapshot,"
    " and the checks that rest on it could not judge.",
    sources=["docs/extending.md"],
)
def probes_answered(view: SnapshotView) -> Iterator[Verdict]:
    snapshot = view.snapshot
    told = [
        (document, name, probe)
        for document in ("machine", "target")
        for name, probe in getattr(getattr(snapshot, document), "extensions", {}).items()
    ]
    if not told:
        raise Skip("no plug-in added a probe")
    for document, name, probe in told:
        if probe.outcome != "ok":
            yield Finding(
                "warn",
                f"The plug-in's probe {name} gave no facts: {probe.reason or probe.outcome}.",
                subjects=about("plugin", name),
                evidence=[
                    Evidence(
                        fact=f"{document}.extensions.{name}",
                        value=probe.evidence or probe.outcome,
                        source="",
                    )
                ],
            )
        else:
            yield Passed(f"{name} answered")
