"""What the checks on environment variables share: their evidence, and the finding on one that is set."""

from __future__ import annotations

import re

from ...facts.evidence import Evidence
from ...facts.missing import CannotJudge, Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Remedy
from ...findings.subjects import about
from ..target import variables
from ..visible import visible

CUDA_GUIDE = "CUDA C++ programming guide, environment variables"


def told(view: SnapshotView, name: str) -> Evidence:
    """The Evidence for a variable of the target."""
    return view.evidence("target.environment.variables", f"{name}={variables(view).get(name, '')}")


def misset(view: SnapshotView, name: str, message: str, advice: str = "Unset it.") -> Finding:
    """The warning about a variable that had better not be set."""
    return Finding(
        "warn",
        message,
        about("variable", name),
        [told(view, name)],
        Remedy(advice, [f"unset {name}"]),
    )


def is_on(value: str | None) -> bool:
    """A switch of CUDA's, which anything but 0 turns on."""
    return (value or "0").strip() not in ("", "0")


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
