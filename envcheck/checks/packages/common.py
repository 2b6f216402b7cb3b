"""What the checks on distributions share: the finding on one of them, beside others."""

from __future__ import annotations

from collections.abc import Sequence

from ..reading import Distribution, SnapshotView
from ..target import PLACE, named
from ..verdicts import Cause, Evidence, Finding, Param, Remedy, about


def found(
    view: SnapshotView,
    cause: Cause,
    one: Distribution,
    *others: Distribution,
    evidence: Sequence[Evidence] = (),
    commands: Sequence[str] | None = None,
    advice: Remedy | None = None,
    **params: Param,
) -> Finding:
    """The cause, found on a distribution; {package} and {others} of its templates are filled in.

    evidence: more than that they are installed.
    """
    together = view.evidence(PLACE, ", ".join(map(named, (one, *others))))
    return cause.found(
        about("package", one.name),
        [together, *evidence],
        commands=commands,
        advice=advice,
        package=named(one),
        others=" and ".join(map(named, others)),
        **params,
    )
