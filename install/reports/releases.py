"""The releases that could be installed, judged for one machine, as a document for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from ..catalogue.containers import ImageRelease, ImageStack
from ..fit.gpu_rules import needed_driver
from ..fit.models import Candidate, ImageCandidate, ImageFit, Refusal, StackFit

SCHEMA = 1

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
    interpreter: str = ""  # the one that it would get
    python_to_get: str = ""


class ImageRow(Row, frozen=True, kw_only=True):
    """One month's container."""

    reference: str
    compat_branches: list[str]  # older drivers for data-centre GPUs; empty: not known
    capability: str  # the least compute capability
    framework: str  # its version
    tensorflow: str  # the same, "" of another framework
    python: str
    ubuntu: str
    sister: dict[str, str]  # what the same month's base image says of what is not known here


class StackRows(msgspec.Struct, frozen=True, kw_only=True):
    """A stack's releases, or a flavour's, newest first."""

    name: str
    flavour: str = ""  # of containers
    title: str
    gpu: bool = True
    newest_that_fits: str  # "" where none does
    releases: Sequence[WheelRow | ImageRow]


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What a command would take; ``refused`` says why it would take nothing."""

    command: str = "envcheck install"
    stack: str = ""
    release: str = ""
    python: str = ""  # the interpreter, or the version that would be got
    reference: str = ""  # of a container, as the engine that it would go into
    engine: str = ""
    reasons: list[str] = []
    refused: str = ""
    hint: str = ""


class Releases(msgspec.Struct, frozen=True, kw_only=True):
    """The whole matrix of a mode. ``otherwise`` is taken where the index of ``chosen`` does not answer;
    ``others`` are the commands that name a stack, and what they would take."""

    schema: int = SCHEMA
    mode: Literal["wheel", "container"]
    machine: str
    chosen: Chosen
    otherwise: Chosen | None
    others: list[Chosen]
    stacks: list[StackRows]


def build(
    machine: str,
    judged: Iterable[StackFit | ImageFit],
    chosen: Chosen,
    otherwise: Chosen | None = None,
    others: Sequence[Chosen] = (),
    mode: Literal["wheel", "container"] = "wheel",
) -> Releases:
    return Releases(
        mode=mode,
        machine=machine,
        chosen=chosen,
        otherwise=otherwise,
        others=list(others),
        stacks=[_stack(one) for one in judged],
    )


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
        return ImageRow(
            **judged,
            driver=release.min_driver,
            reference=release.reference,
            compat_branches=list(release.compat_branches),
            capability=release.min_capability,
            framework=release.framework,
            tensorflow=release.framework if "/tensorflow:" in release.reference else "",
            python=release.python,
            ubuntu=release.ubuntu,
            sister=release.sister,
        )
    return WheelRow(
        **judged,
        driver=needed_driver(release),
        version=release.version,
        python=release.python,
        cudnn=release.cudnn,
        tensorrt=release.tensorrt,
        interpreter="" if candidate.interpreter is None else candidate.interpreter.path,
        python_to_get=candidate.python_to_get,
    )


def _fits(candidate: Candidate | ImageCandidate) -> Fits:
    if candidate.refusals:
        named = all(refusal.overridable for refusal in candidate.refusals)
        return "if-named" if named else "no"
    return "perhaps" if candidate.open else "yes"
