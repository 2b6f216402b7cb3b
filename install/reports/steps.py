"""A plan's steps in a few words each, for a short plan and for the line that shows progress."""

from __future__ import annotations

from ...reports.plain import number_of
from ..plan.models import AnyPlan, StepName, WheelPlan
from .amounts import size


def of(plan: AnyPlan) -> list[tuple[StepName, str]]:
    """(name, "install 33 packages"), in the plan's order."""
    amount = size(plan.download_bytes) if plan.download_bytes else "nothing"
    words: dict[StepName, str] = {
        "fetch": f"{fetching(plan)} {amount}",
        "create": "create the environment",
        "configure": "configure it",
        "resolve": "pin the image",
        "verify": "verify with the doctor",
        "swap": "put it in use",
    }
    if isinstance(plan, WheelPlan):
        count = sum(not package.building for package in plan.packages)
        words |= {
            "python": f"get Python {plan.python}",
            "install": f"install {number_of(count, 'package')}",
        }
    else:
        words["wire"] = "check the GPUs" if plan.wiring else "start it"
    return [(step.name, words[step.name]) for step in plan.steps]


def fetching(plan: AnyPlan) -> str:
    """ "fetch"; "copy" or "load" where a bundle or an archive has the files."""
    sentences = [step.sentence for step in plan.steps if step.name == "fetch"]
    return sentences[0].partition(" ")[0] if sentences else "fetch"
