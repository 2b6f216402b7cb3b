"""The check on the probes of other packages: did each of them answer."""

from __future__ import annotations

from ..reading import Skip, SnapshotView
from ..verdicts import Evidence, Passed, Verdicts, about, check, warn

NO_FACTS = warn(
    "plug-in-probe-failed",
    "a plug-in's probe returned no facts",
    "The plug-in's probe {probe} returned no facts: {reason}.",
)


@check(
    "PLG-002",
    title="The probes of plug-ins answered",
    causes=[NO_FACTS],
    about="A probe of another package runs in a process of its own. If it takes too long, crashes or is not"
    " a valid probe, its facts are missing from this Snapshot, and the checks that need them could not run.",
    sources=["docs/extending.md"],
)
def probes_answered(view: SnapshotView) -> Verdicts:
    snapshot = view.snapshot
    probes = [
        (document, name, probe)
        for document in ("machine", "target")
        for name, probe in getattr(getattr(snapshot, document), "extensions", {}).items()
    ]
    if not probes:
        raise Skip("no plug-in added a probe")
    for document, name, probe in probes:
        if probe.outcome != "ok":
            value = probe.evidence or probe.outcome
            yield NO_FACTS.found(
                about("plugin", name),
                [Evidence(fact=f"{document}.extensions.{name}", value=value, source="")],
                probe=name,
                reason=probe.reason or probe.outcome,
            )
        else:
            yield Passed(f"{name} answered")
