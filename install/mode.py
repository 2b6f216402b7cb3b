"""The interface between the pipeline and what is installed: a virtual environment, or a container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from .plan.models import AnyPlan, Plan, StepName

if TYPE_CHECKING:
    from .survey import VerifyOptions
    from .transaction.interfaces import Artifact, Builder

ChoiceT = TypeVar("ChoiceT")
ResolvedT = TypeVar("ResolvedT")
PlanT = TypeVar("PlanT", bound=Plan)


class Reporter(Protocol):
    """Progress callbacks."""

    def say(self, sentence: str) -> None:
        """What begins, or what happened, in a sentence."""

    def step(self, name: StepName) -> None:
        """The step of the plan that begins."""

    def progress(self, detail: str) -> None:
        """How far the current task is, in words; called several times a second."""

    def looking(self, running: list[str], done: int, total: int) -> None:
        """How far the doctor is with the new environment."""


class UI(Reporter, Protocol):
    """Progress and confirmation callbacks."""

    def agreed(self, plan: AnyPlan) -> bool:
        """Show the plan; False: the user declines."""


class Mode(Protocol[ChoiceT, ResolvedT, PlanT]):
    """The stages that differ, in the order of their calls. What each yields is the next one's input."""

    def fit(self) -> ChoiceT:
        """Look at the machine, and choose what fits. Raises Cannot where nothing does."""

    def resolve(self, choice: ChoiceT) -> ResolvedT:
        """Ask the indexes or the registry what the choice is, to the byte."""

    def plan(self, resolved: ResolvedT) -> PlanT:
        """Everything that will happen. Raises UsageError for the path, Cannot for want of space."""

    def artifact(self, resolved: ResolvedT) -> Artifact: ...

    def builder(self, resolved: ResolvedT, plan: PlanT) -> Builder: ...

    def verify_options(self, resolved: ResolvedT) -> VerifyOptions:
        """How the doctor looks at the new version."""
