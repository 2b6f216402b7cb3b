"""What the checks on environment variables share: their evidence, and the finding on one that is set."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..reading import CannotJudge, Skip, SnapshotView
from ..target import variables_if_known
from ..verdicts import Cause, Evidence, Finding, Param, about
from ..visible import visible


def setting_evidence(view: SnapshotView, name: str) -> Evidence:
    """The Evidence for a variable of the target."""
    value = variables_if_known(view).get(name, "")
    return view.evidence("seen.environment.variables", f"{name}={value}")


def misset(
    view: SnapshotView, cause: Cause, name: str, right: Sequence[str] = (), **params: Param
) -> Finding:
    """The cause, found on a variable, with the commands that set it right, or the one that unsets it."""
    return cause.found(
        about("variable", name),
        [setting_evidence(view, name)],
        commands=right or cause.commands or [f"unset {name}"],
        advice=None,
        variable=name,
        value=variables_if_known(view).get(name, ""),
        **params,
    )


def newest_generation(view: SnapshotView) -> int:
    """Of the visible GPUs: 9 for Hopper. Raises Skip where no compute capability is known."""
    try:
        found = [major(one.capability) for one in visible(view).chosen]
    except CannotJudge:
        found = []
    if not any(found):
        raise Skip("the compute capabilities of the visible GPUs are not known")
    return max(found)


def major(capability: str) -> int:
    """The generation of a compute capability; 0 where it is not known."""
    found = re.match(r"\d+", capability)
    return int(found[0]) if found else 0
