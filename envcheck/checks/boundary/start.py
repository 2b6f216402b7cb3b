"""The check on a container that its engine does not start with the GPUs: why, by the engine's own words."""

from __future__ import annotations

from ...data.engine_errors import explain
from ..container_start import mended
from ..declared import declared_causes
from ..reading import Skip, SnapshotView
from ..verdicts import Passed, Verdicts, about, check
from .common import image

CAUSE = declared_causes(__name__)
NOT_STARTED = CAUSE["container-does-not-start"]


@check("BND-010")
def container_starts(view: SnapshotView) -> Verdicts:
    probe = view.inside.interpreter
    if probe is None:
        raise Skip("the container's inside: not in this snapshot")
    if probe.facts is not None:
        yield Passed("it started")
        return
    error = explain(f"{probe.reason} {probe.evidence}")
    if error is None:
        raise Skip("the engine's message is not known here (BND-001)")
    yield NOT_STARTED.found(
        about("container", view.inside.location),
        [view.evidence("target.interpreter", probe.reason)],
        advice=mended(view, error, image(view)),
        why=error.meaning,
    )
