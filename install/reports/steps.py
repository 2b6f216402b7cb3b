"""A plan's steps in a few words each, for a short plan and for the line that shows progress."""

from __future__ import annotations

from ..plan.models import AnyPlan, Step, StepName, WheelPlan
from .amounts import size


def of(plan: AnyPlan) -> list[tuple[StepName, str]]:
    """(name, "install 33 packages"), in the plan's order."""
    return [(step.name, _words(step, plan)) for step in plan.steps]


def fetching(plan: AnyPlan) -> str:
    """ "fetch"; "copy" or "verify" where a bundle or an archive has the files."""
    return next((_verb(step) for step in plan.steps if step.name == "fetch"), "fetch")


def _verb(step: Step) -> str:
    """What its sentence begins with."""
    return step.sentence.partition(" ")[0]


def _words(step: Step, plan: AnyPlan) -> str:
    if step.name == "fetch":
        amount = size(plan.download_bytes) if plan.download_bytes else "nothing"
        return f"{_verb(step)} {amount}"
    if isinstance(plan, WheelPlan):
        count = sum(not package.building for package in plan.packages)
        here: dict[StepName, str] = {
            "python": f"get Python {plan.python}",
            "create": "create the environment",
            "install": f"install {count} package{'' if count == 1 else 's'}",
            "configure": "configure it",
            "verify": "verify with the doctor",
            "swap": "put it in use",
        }
    else:
        here = {
            "resolve": "pin the image",
            "wire": "check the GPUs" if plan.wiring else "start it",
            "verify": "verify with the doctor",
            "swap": "put it in use",
        }
    return here.get(step.name, step.name)
