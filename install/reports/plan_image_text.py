"""What the plan of a container says beyond every plan: the image, its engine, the way to the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.models import ImagePlan
from .amounts import size


def entries(plan: ImagePlan, *, verbose: bool) -> Iterator[tuple[str, str]]:
    """("engine", "podman 4.3.1"), and so on. A digest stands whole: it is what one pastes."""
    yield "image", plan.reference
    yield "pinned", plan.manifest
    if verbose and plan.digest != plan.manifest:
        yield "", f"of the index {plan.digest}"
    if plan.contents:
        yield "holds", ", ".join(f"{k} {v or 'not known'}" for k, v in plan.contents.items())
    yield "engine", plan.engine
    yield "GPUs", plan.wiring or "none is wired"
    layers = f"{plan.layers} layer{'' if plan.layers == 1 else 's'}"
    estimated = ": no manifest says it" if verbose else ""
    unpacked = f"about {size(plan.unpacked_bytes)} unpacked (estimated{estimated})"
    yield "size", f"{size(plan.compressed_bytes)} in {layers}, {unpacked}"
    if verbose or plan.user not in ("", "root"):
        yield "user", plan.user or "root"
