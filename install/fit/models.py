"""What fits this machine: the types of the answer, from the reasons up to the choice, for both modes."""

from __future__ import annotations

from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from ..catalogue.containers import ImageRelease, ImageStack
from ..catalogue.model import Release, Stack
from ..pythons.interpreter import Interpreter

RefusalKind = Literal[
    "gpu",  # none is there
    "driver",
    "capability",  # no kernels for this GPU
    "architecture",  # of the machine
    "libc",
    "cpu",
    "python",
    "disk",
    "place",  # noexec, read-only
    "broken",
    "not-known",
    "prerelease",
]


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a release is not for this machine, in one sentence that names both sides."""

    kind: RefusalKind
    sentence: str  # "needs driver 525.60.13 or newer, and this machine has 470.82.01"
    hint: str = ""  # what to do about it, where something can be done
    overridable: bool = False  # naming the release is enough ("not-known", "prerelease")


class AnyRelease(Protocol):
    """What judging needs of a release, of wheels or of a container."""

    @property
    def release(self) -> str: ...

    @property
    def sister(self) -> dict[str, str]: ...


class AnyStack(Protocol):
    """What choosing needs of a stack, of wheels or of containers."""

    @property
    def name(self) -> str: ...


S = TypeVar("S", bound=AnyStack)
R = TypeVar("R", bound=AnyRelease)


class JudgedRelease(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """One release, judged."""

    release: R
    refusals: list[Refusal] = []
    # What to know although it fits: "CUDA 12.5 by minor-version compatibility".
    notes: list[str] = []
    # Something of the machine that may rule it out is not known: a note says what.
    open: bool = False
    interpreter: Interpreter | None = None  # of wheels alone, as the next one
    python_to_get: str = ""  # "3.8": no interpreter is there, and uv has this one

    @property
    def fits(self) -> bool:
        return not self.refusals


class Fit(msgspec.Struct, Generic[S, R], frozen=True, kw_only=True):
    """One stack's releases, newest first, judged for this machine."""

    stack: S
    candidates: list[JudgedRelease[R]]

    @property
    def best(self) -> JudgedRelease[R] | None:
        """The newest that fits."""
        return next((candidate for candidate in self.candidates if candidate.fits), None)


class Selection(msgspec.Struct, Generic[S, R], frozen=True, kw_only=True):
    """What will be installed, and why this."""

    stack: S
    candidate: JudgedRelease[R]
    reasons: list[str] = []  # "nvidia-tf1 was skipped: its index does not answer"
    newer_refused: list[JudgedRelease[R]] = []  # newer releases of the same stack


Candidate = JudgedRelease[Release]
StackFit = Fit[Stack, Release]
Choice = Selection[Stack, Release]
ImageCandidate = JudgedRelease[ImageRelease]
ImageFit = Fit[ImageStack, ImageRelease]
ImageChoice = Selection[ImageStack, ImageRelease]


class Reasons:
    """Collects what is to be said of one release.

    Refusals are predicates of the release ("needs …, and this machine has …"); notes are sentences.
    """

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

    def about(
        self, release: R, interpreter: Interpreter | None = None, python_to_get: str = ""
    ) -> JudgedRelease[R]:
        """The release with all that was collected."""
        return JudgedRelease(
            release=release,
            refusals=self.refusals,
            notes=self.notes,
            open=self.open,
            interpreter=interpreter,
            python_to_get=python_to_get,
        )
