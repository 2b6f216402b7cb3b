"""The interface between the pipeline and what is installed: a virtual environment, or a container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .plan.models import AnyPlan, StepName
    from .store.progress import Fetching
    from .survey import VerifyOptions
    from .transaction.interfaces import Artifact, Builder


class Reporter(Protocol):
    """Progress callbacks."""

    def say(self, sentence: str) -> None:
        """What begins, or what happened, in a sentence."""

    def step(self, name: StepName) -> None:
        """The step of the plan that begins."""

    def fetching(self, state: Fetching) -> None:
        """Called from a thread of its own, several times a second."""

    def looking(self, running: list[str], done: int, total: int) -> None:
        """How far the doctor is with the new environment."""


class UI(Reporter, Protocol):
    """Progress and confirmation callbacks."""

    def agreed(self, plan: AnyPlan) -> bool:
        """Show the plan; False: the user declines."""


class Mode(Protocol):
    """The stages that differ, in the order of their calls. What each yields is the next one's input."""

    def fit(self) -> Any:
        """Look at the machine, and choose what fits. Raises Cannot where nothing does."""

    def resolve(self, choice: Any) -> Any:
        """Ask the indexes or the registry what the choice is, to the byte."""

    def plan(self, resolved: Any) -> AnyPlan:
        """Everything that will happen. Raises UsageError for the path, Cannot for want of space."""

    def artifact(self, resolved: Any) -> Artifact: ...

    def builder(self, resolved: Any, plan: Any) -> Builder: ...

    def verify_options(self, resolved: Any) -> VerifyOptions:
        """How the doctor looks at the new version."""
