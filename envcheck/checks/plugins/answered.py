"""The checks on what other packages add: is it in use, did its probes answer."""

from __future__ import annotations

from ... import plugins
from ..declared import declared_causes
from ..reading import Skip, SnapshotView
from ..verdicts import Evidence, Passed, Unjudged, Verdicts, about, check

CAUSE = declared_causes(__name__)


@check("PLG-001")
def plugins_can_be_used(view: SnapshotView) -> Verdicts:
    installed = [point for group in plugins.GROUPS for point in plugins.entry_points(group)]
    if not installed:
        raise Skip("no plug-in is installed")
    problems = plugins.all_problems()
    for problem in problems:
        package = problem.package or "a package"
        named = f"plug-in {problem.name} ({problem.group}) of {package}"
        if problem.group == "envcheck.checks":
            reason = f"the checks of the {named} cannot be used: {problem.reason}"
            yield Unjudged("could-not-run", reason, about("package", problem.package))
        yield CAUSE["plug-in-unusable"].found(
            about("package", problem.package), plugin=named, reason=problem.reason, package=package
        )
    if not problems:
        yield Passed(f"{len(installed)} in use")


@check("PLG-002")
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
            yield CAUSE["plug-in-probe-failed"].found(
                about("plugin", name),
                [Evidence(fact=f"{document}.extensions.{name}", value=value, source="")],
                probe=name,
                reason=probe.reason or probe.outcome,
            )
        else:
            yield Passed(f"{name} answered")
