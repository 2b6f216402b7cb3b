"""The releases that could be installed, judged for one machine, as a document for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from ..catalogue.containers import ImageRelease, ImageStack
from ..fit.gpu_rules import needed_driver
from ..fit.models import Candidate, ImageCandidate, ImageFit, Refusal, StackFit

SCHEMA = 3

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
    python: list[str]  # minor versions
    refusals: list[Refusal] = []
    notes: list[str] = []
    version: str = ""  # of wheels, as the next four
    cudnn: str = ""
    tensorrt: str = ""
    interpreter: str = ""  # the one that it would get
    python_to_get: str = ""
    reference: str = ""  # of a container, as the rest
    framework: str = ""  # its version
    ubuntu: str = ""
    capability: str = ""  # the least compute capability
    compat_branches: list[str] = []  # older drivers for data-centre GPUs; empty: not known


class StackRows(msgspec.Struct, frozen=True, kw_only=True):
    """A stack's releases, or a flavour's, newest first."""

    name: str
    flavour: str  # of containers
    title: str
    gpu: bool
    newest_that_fits: str  # "" where none does
    releases: list[Row]


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
    """The stacks' releases with the verdict on each."""
    return [
        StackRows(
            name=one.stack.name,
            flavour=one.stack.flavour if isinstance(one.stack, ImageStack) else "",
            title=one.stack.title,
            gpu=isinstance(one.stack, ImageStack) or one.stack.gpu,
            newest_that_fits="" if one.best is None else one.best.release.release,
            releases=[_row(candidate) for candidate in one.candidates],
        )
        for one in judged
    ]


def _row(candidate: Candidate | ImageCandidate) -> Row:
    release = candidate.release
    fits: Fits = "perhaps" if candidate.open else "yes"
    if candidate.refusals:
        named = all(refusal.overridable for refusal in candidate.refusals)
        fits = "if-named" if named else "no"
    more: dict[str, Any]
    if isinstance(release, ImageRelease):
        more = {name: getattr(release, name) for name in ("reference", "framework", "ubuntu")}
        more |= {
            "driver": release.min_driver,
            "python": [release.python] if release.python else [],
            "capability": release.min_capability,
            "compat_branches": list(release.compat_branches),
        }
    else:
        same = ("version", "python", "cudnn", "tensorrt")
        more = {name: getattr(release, name) for name in same}
        more |= {
            "driver": needed_driver(release),
            "interpreter": candidate.interpreter.path if candidate.interpreter else "",
            "python_to_get": candidate.python_to_get,
        }
    return Row(
        release=release.release,
        fits=fits,
        cuda=release.cuda,
        refusals=candidate.refusals,
        notes=candidate.notes,
        **more,
    )
