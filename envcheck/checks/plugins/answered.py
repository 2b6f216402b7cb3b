"""The checks on what other packages add: is it in use, did its probes answer."""

from __future__ import annotations

from ... import plugins
from ..reading import Skip, SnapshotView
from ..verdicts import Evidence, Passed, Unjudged, Verdicts, about, check, warn

UNUSABLE = warn(
    "plug-in-unusable",
    "a plug-in cannot be used",
    "The {plugin} cannot be used: {reason}.",
    "In the environment that envcheck is installed in, upgrade or uninstall {package}.",
    cases=("plugin",),
)


@check(
    "PLG-001",
    title="Plug-ins can be used",
    causes=[UNUSABLE],
    about="Other packages add checks, probes, stacks and report formats to envcheck by entry points. One that"
    " cannot be imported, or that uses a name that is taken, is not loaded; its checks could not run.",
    sources=["packaging.python.org/en/latest/specifications/entry-points"],
)
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
        yield UNUSABLE.found(
            about("package", problem.package), plugin=named, reason=problem.reason, package=package
        )
    if not problems:
        yield Passed(f"{len(installed)} in use")


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
