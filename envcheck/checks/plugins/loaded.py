"""The check on plug-ins: is everything in use that other packages add."""

from __future__ import annotations

from collections.abc import Iterator

from ... import plugins
from ...facts.missing import Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.subjects import about
from ..registry import check


@check(
    "PLG-001",
    title="Plug-ins can be used",
    problem="a plug-in cannot be used",
    about="Other packages add checks, probes, stacks and report formats to envcheck by entry points. One that"
    " cannot be imported, or that takes a name that is in use, is left out. Where it has checks, these could"
    " not run. This is about the envcheck that judges, not about the machine that is judged.",
    sources=["packaging.python.org/en/latest/specifications/entry-points"],
)
def plugins_can_be_used(view: SnapshotView) -> Iterator[Verdict]:
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
        yield Finding(
            "warn",
            f"The {named} cannot be used: {problem.reason}.",
            subjects=about("package", problem.package),
            remedy=Remedy(
                f"In the environment that envcheck is installed in, upgrade or uninstall {package}."
            ),
        )
    if not problems:
        yield Passed(f"{len(installed)} in use")
