"""What fits this machine: the types of the answer, from the reasons up to the choice."""

from __future__ import annotations

from typing import Literal, Protocol

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


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One release, judged: what both modes say."""

    release: AnyRelease
    refusals: list[Refusal] = []
    notes: list[
        str
    ] = []  # what to know although it fits: "CUDA 12.5 by minor-version compatibility"
    open: bool = (
        False  # something of the machine that may rule it out is not known: a note says what
    )

    @property
    def fits(self) -> bool:
        return not self.refusals


class Candidate(Judged, frozen=True, kw_only=True):
    """One release of wheels."""

    release: Release
    interpreter: Interpreter | None = None
    python_to_get: str = ""  # "3.8": no interpreter is there, and uv has this one


class ImageCandidate(Judged, frozen=True, kw_only=True):
    """One release of a container."""

    release: ImageRelease


class StackFit(msgspec.Struct, frozen=True, kw_only=True):
    """One stack's releases, newest first, judged for this machine."""

    stack: Stack
    candidates: list[Candidate]

    @property
    def best(self) -> Candidate | None:
        """The newest that fits."""
        return next((candidate for candidate in self.candidates if candidate.fits), None)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What will be installed, and why this."""

    stack: Stack
    candidate: Candidate
    reasons: list[str] = []  # "nvidia-tf1 was skipped: its index does not answer"
    newer_refused: list[Candidate] = []  # newer releases of the same stack, with their refusals


class ImageFit(msgspec.Struct, frozen=True, kw_only=True):
    """One flavour's containers, newest first, judged for this machine."""

    stack: ImageStack
    candidates: list[ImageCandidate]

    @property
    def best(self) -> ImageCandidate | None:
        """The newest that fits."""
        return next((candidate for candidate in self.candidates if candidate.fits), None)


class ImageChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which image will be installed, and why this."""

    stack: ImageStack
    reference: str
    release: ImageRelease | None  # None: an image of one's own, of which nothing is known
    reasons: list[str] = []
    newer_refused: list[ImageCandidate] = []  # newer releases of the same flavour
    notes: list[str] = []
    open: bool = False  # of the machine something is not known that may rule it out
