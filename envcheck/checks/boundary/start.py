"""The check on a container that its engine does not start with the GPUs: why, by the engine's own words."""

from __future__ import annotations

from ...data.engine_errors import explain
from ..container_start import mended
from ..reading import Skip, SnapshotView
from ..verdicts import Passed, Verdicts, about, check, fail
from .common import image

NOT_STARTED = fail(
    "container-does-not-start",
    "the container does not start with its GPUs",
    "The container does not start: {why}.",
)


@check(
    "BND-010",
    title="The engine starts the container with its GPUs",
    causes=[NOT_STARTED],
    about="Between `run` and the first process, NVIDIA's tools mount devices and libraries into a"
    " container. If they fail, the engine ends with a long line; its last words are the reason.",
    sources=["engine_errors.csv; nvidia-docker#1699, #1551; nvidia-container-toolkit#289"],
    follows=("KRN-001", "KRN-002", "CTR-002", "CTR-004", "CTR-006", "CTR-007", "CTR-011"),
)
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
