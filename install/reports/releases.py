"""The releases that could be installed, judged for one machine, as a document for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from ..catalogue.containers import ImageRelease, ImageStack
from ..fit.gpu_rules import needed_driver
from ..fit.models import Candidate, ImageCandidate, ImageFit, Refusal, StackFit

SCHEMA = 2

Fits = Literal[
    "yes",
    "no",
    "if-named",  # only when its user names it
    "perhaps",  # nothing speaks against it, and not everything is known of the machine
]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One release. "" is not known."""

    release: str
    fits: Fits
    cuda: str
    driver: str  # the oldest that runs its CUDA, without a compat libcuda
    refusals: list[Refusal] = []
    notes: list[str] = []


class WheelRow(Row, frozen=True, kw_only=True):
    """One release of wheels."""

    version: str
    python: list[str]
    cudnn: str
    tensorrt: str
    interpreter: str  # the one that it would get
    python_to_get: str


class ImageRow(Row, frozen=True, kw_only=True):
    """One month's container."""

    reference: str
    compat_branches: list[str]  # older drivers for data-centre GPUs; empty: not known
    capability: str  # the least compute capability
    framework: str  # its version
    python: str
    ubuntu: str


class StackRows(msgspec.Struct, frozen=True, kw_only=True):
    """A stack's releases, or a flavour's, newest first."""

    name: str
    flavour: str  # of containers
    title: str
    gpu: bool
    newest_that_fits: str  # "" where none does
    releases: Sequence[WheelRow | ImageRow]


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What a command would install; ``refused`` says why it would install nothing."""

    command: str = "envcheck install"
    stack: str = ""
    release: str = ""
    where: str = ""  # the interpreter, or the container engine
    reasons: list[str] = []
    refused: str = ""
    hint: str = ""


class Releases(msgspec.Struct, frozen=True, kw_only=True):
    """The whole matrix of a mode."""

    schema: int = SCHEMA
    mode: Literal["wheel", "container"]
    machine: str
    chosen: Chosen
    stacks: list[StackRows]


def rows(judged: Iterable[StackFit | ImageFit]) -> list[StackRows]:
    return [_stack(one) for one in judged]


def _stack(judged: StackFit | ImageFit) -> StackRows:
    stack, best = judged.stack, judged.best
    return StackRows(
        name=stack.name,
        flavour=stack.flavour if isinstance(stack, ImageStack) else "",
        title=stack.title,
        gpu=isinstance(stack, ImageStack) or stack.gpu,
        newest_that_fits="" if best is None else best.release.release,
        releases=[_row(candidate) for candidate in judged.candidates],
    )


def _row(candidate: Candidate | ImageCandidate) -> WheelRow | ImageRow:
    release = candidate.release
    judged: dict[str, Any] = {
        "release": release.release,
        "fits": _fits(candidate),
        "cuda": release.cuda,
        "refusals": candidate.refusals,
        "notes": candidate.notes,
    }
    if isinstance(release, ImageRelease):
        same = ("reference", "framework", "python", "ubuntu")
        return ImageRow(
            **judged,
            **{name: getattr(release, name) for name in same},
            driver=release.min_driver,
            compat_branches=list(release.compat_branches),
            capability=release.min_capability,
        )
    return WheelRow(
        **judged,
        **{name: getattr(release, name) for name in ("version", "python", "cudnn", "tensorrt")},
        driver=needed_driver(release),
        interpreter="" if candidate.interpreter is None else candidate.interpreter.path,
        python_to_get=candidate.python_to_get,
    )


def _fits(candidate: Candidate | ImageCandidate) -> Fits:
    if candidate.refusals:
        named = all(refusal.overridable for refusal in candidate.refusals)
        return "if-named" if named else "no"
    return "perhaps" if candidate.open else "yes"
