"""Carries out what was prepared: the transaction over an image, and the doctor's look from inside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ... import collection
from ...collection import Collected, Kernels
from ...exit_codes import CouldNotLook
from ...facts.snapshot import Snapshot
from ..engines import inside
from ..engines.image_store import EngineImages
from ..images.artifact import LockedImage
from ..images.builder import ImageBuilder
from ..plan.models import ImagePlan
from ..start import start_file
from ..transaction.execute import execute
from ..transaction.layout import Version
from ..transaction.record import Installed
from ..verify import DoctorVerifier, unchanged
from .prepare import Prepared

if TYPE_CHECKING:
    from ..running.run import How, Told

LOOKED_INTO = ("BND-001",)  # a container that nobody could look into is not verified


def carry_out(prepared: Prepared, plan: ImagePlan, how: How, told: Told) -> Installed:
    """Install what the plan says, or leave everything as it was. Raises as ``transaction.execute``."""
    stack, request = prepared.choice.stack, prepared.request
    verifier = DoctorVerifier(
        lambda directory: _look(directory, unchanged(prepared.snapshot), told.looking),
        must_pass=[*LOOKED_INTO, *stack.must_pass],
        allow_no_gpu=request.allow_no_gpu,
    )
    return execute(
        plan,
        LockedImage(prepared.image),
        request,
        ImageBuilder(prepared, plan, told.step),
        verifier,
        images=EngineImages(),
        wait=how.wait,
        tell=told.say,
        step=told.step,
        fresh=how.fresh,
    )


def _look(directory: Path, seen: Snapshot, progress: collection.Progress) -> Collected:
    """At a version, from inside a fresh container."""
    version = Version(directory)
    try:
        start = start_file.read(version.start)
    except (OSError, msgspec.DecodeError) as error:
        raise CouldNotLook(f"{version.start} does not say how it is started: {error}") from None
    within = inside.of_start(start)
    return collection.collect(inside=within, kernels=Kernels(), progress=progress, seen=seen)
