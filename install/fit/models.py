"""What fits this machine: the types of the answer, from the reasons up to the choice, for both modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Literal, TypeVar

import msgspec
from packaging.version import Version

from ...checks.visible import VisibleDevice
from ..catalogue.containers import ImageRelease, ImageStack
from ..catalogue.model import Release, Stack
from ..pythons.interpreter import Interpreter

# What says most about why nothing works here comes first.
RefusalKind = Literal[
    "gpu",  # none is there
    "architecture",  # of the machine
    "libc",
    "cpu",
    "driver",
    "capability",  # no kernels for this GPU
    "place",  # noexec, read-only
    "disk",
    "python",
    "broken",
    "not-known",
    "prerelease",
]

GpuState = Literal[
    "there",  # the driver lists it
    "silent",  # on the PCI bus, and the driver lists none
    "no-driver",  # on the PCI bus, and no driver answers
    "absent",
    "not-known",
]


class FitMachine(msgspec.Struct, frozen=True, kw_only=True):
    """Its facts; "" and None are not known."""

    architecture: str  # "x86_64"
    libc: str  # "glibc", "musl"
    glibc: str
    cpu_flags: list[str] | None
    gpu_state: GpuState
    on_bus: int  # GPUs that the PCI bus shows
    gpus: list[VisibleDevice]  # one of each compute capability
    # Of all GPUs that the driver lists, each once; "" is one whose name is not known.
    names: list[str]
    driver: str
    driver_version: Version | None  # without what a vGPU's may end in
    driver_cuda: str  # the newest CUDA that the driver supports: "12.2"
    windows_driver: bool  # WSL: its version is not one of Linux's


S = TypeVar("S", Stack, ImageStack)
R = TypeVar("R", Release, ImageRelease)


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a release is not for this machine, in one sentence that names both sides."""

    kind: RefusalKind
    sentence: str  # "needs driver 525.60.13 or newer, and this machine has 470.82.01"
    hint: str = ""  # what to do about it, where something can be done
    overridable: bool = False  # naming the release is enough ("not-known", "prerelease")


class JudgedRelease(msgspec.Struct, Generic[R], kw_only=True):
    """One release, with its refusals and notes.

    Refusals are predicates of the release ("needs …, and this machine has …"); notes are sentences.
    """

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

    def refuse(self, kind: RefusalKind, sentence: str, hint: str = "") -> None:
        self.refusals.append(Refusal(kind=kind, sentence=sentence, hint=hint))

    def refuse_unless_named(
        self, sentence: str, *, kind: RefusalKind = "not-known", more: str = ""
    ) -> None:
        """Its user may decide otherwise. more: what to know then."""
        hint = f"--release {self.release.release} installs it anyway{more}"
        self.refusals.append(Refusal(kind=kind, sentence=sentence, hint=hint, overridable=True))

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def unknown(self, sentence: str) -> None:
        """A note of what is not known of the machine, and may yet rule the release out."""
        self.notes.append(sentence)
        self.open = True

    def named(self) -> JudgedRelease[R]:
        """As it stands when its user names it: what naming overrides becomes a note."""
        overridden = [refusal for refusal in self.refusals if refusal.overridable]
        notes: list[str] = [f"{self.release.release} {refusal.sentence}." for refusal in overridden]
        return msgspec.structs.replace(
            self,
            refusals=[refusal for refusal in self.refusals if not refusal.overridable],
            notes=[*notes, *self.notes],
        )


class Fit(msgspec.Struct, Generic[S, R], frozen=True, kw_only=True):
    """One stack's releases, newest first, judged for this machine."""

    stack: S
    candidates: list[JudgedRelease[R]]

    @property
    def best(self) -> JudgedRelease[R] | None:
        """The newest that fits."""
        return next((candidate for candidate in self.candidates if candidate.fits), None)

    @property
    def nearest(self) -> JudgedRelease[R] | None:
        """The release with the fewest reasons against it; the newest of those."""
        return min(self.candidates, key=lambda one: len(one.refusals), default=None)

    def why_none(self) -> str:
        """Why no release fits: what all have in common, else what the nearest one lacks."""
        near = self.nearest
        if near is None:
            return "it has no release"
        if len(self.candidates) == 1:
            return f"its one release, {near.release.release}, {sentences(near.refusals)}"
        common = [
            refusal
            for refusal in near.refusals
            if all(refusal in other.refusals for other in self.candidates)
        ]
        if common:
            return f"it {sentences(common)}"
        return (
            f"of its releases, {near.release.release} comes nearest, and {sentences(near.refusals)}"
        )


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


def sentences(refusals: Sequence[Refusal]) -> str:
    return "; it ".join(refusal.sentence for refusal in refusals)
