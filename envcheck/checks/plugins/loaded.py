"""The check on plug-ins: is everything in use that other packages add."""

from __future__ import annotations

from ... import plugins
from ..reading import Skip, SnapshotView
from ..verdicts import Passed, Unjudged, Verdicts, about, check, warn

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
