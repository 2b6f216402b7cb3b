"""Which of NVIDIA's containers work on a machine, and all reasons against the others. Pure."""

from __future__ import annotations

from ...facts.snapshot import Snapshot
from ..catalogue.containers import ImageRelease, ImageStack
from ..pythons.versions import listed
from . import image_rules
from .cpu_rules import cpu
from .machine import FitMachine, machine_of
from .models import ImageCandidate, ImageFit
from .reasons import Reasons


def judge(stack: ImageStack, snapshot: Snapshot, *, allow_no_gpu: bool = False) -> ImageFit:
    """Judge every release of a flavour, newest first.

    The machine's glibc and Pythons do not matter: the image has its own. What the Snapshot does not know
    is a note, and never a pass in silence.
    """
    machine = machine_of(snapshot)
    return ImageFit(
        stack=stack,
        candidates=[_judged(stack, release, machine, allow_no_gpu) for release in stack.releases],
    )


def _judged(
    stack: ImageStack, release: ImageRelease, machine: FitMachine, allow_no_gpu: bool
) -> ImageCandidate:
    reasons = Reasons()
    _architecture(stack, release, machine, reasons)
    cpu(stack.cpu_flags, machine, reasons)
    image_rules.gpu(machine, stack, release, allow_no_gpu, reasons)
    return ImageCandidate(
        release=release, refusals=reasons.refusals, notes=reasons.notes, open=reasons.open
    )


def _architecture(
    stack: ImageStack, release: ImageRelease, machine: FitMachine, reasons: Reasons
) -> None:
    """The registry knows better what there is; the tables know of no other architecture."""
    known = stack.architectures
    if not machine.architecture:
        reasons.unknown(
            f"The machine's architecture is not known; the tables are about {listed(known)}."
        )
    elif machine.architecture not in known:
        reasons.refuse(
            "not-known",
            f"may not be there for {machine.architecture}: it is known only for {listed(known)}",
            f"--release {release.release} asks the registry",
            overridable=True,
        )
