"""Collects what is to be said of one release: the reasons against it, and what to know although it fits."""

from __future__ import annotations

from .models import Refusal, RefusalKind


class Reasons:
    """Refusals are predicates of the release ("needs …, and this machine has …"); notes are sentences."""

    def __init__(self) -> None:
        self.refusals: list[Refusal] = []
        self.notes: list[str] = []
        self.open = False

    def refuse(
        self, kind: RefusalKind, sentence: str, hint: str = "", *, overridable: bool = False
    ) -> None:
        self.refusals.append(
            Refusal(kind=kind, sentence=sentence, hint=hint, overridable=overridable)
        )

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def unknown(self, sentence: str) -> None:
        """A note of what is not known of the machine, and may yet rule the release out."""
        self.notes.append(sentence)
        self.open = True
