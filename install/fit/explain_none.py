"""Why nothing fits, in few words: told by the release that comes nearest."""

from __future__ import annotations

from collections.abc import Sequence

from .models import Judged, Refusal

# What says most about why nothing works here comes first.
_WEIGHT = ("gpu", "architecture", "libc", "cpu", "driver", "capability", "place", "disk", "python")


def why_none(candidates: Sequence[Judged]) -> str:
    """Why no release fits: what all have in common, else what the nearest one lacks."""
    near = nearest(candidates)
    if near is None:
        return "it has no release"
    if len(candidates) == 1:
        return f"its one release, {near.release.release}, {sentences(near.refusals)}"
    common = [
        refusal
        for refusal in near.refusals
        if all(refusal in other.refusals for other in candidates)
    ]
    if common:
        return f"it {sentences(common)}"
    return f"of its releases, {near.release.release} comes nearest, and {sentences(near.refusals)}"


def nearest(candidates: Sequence[Judged]) -> Judged | None:
    """The release with the fewest reasons against it; the newest of those."""
    return min(candidates, key=lambda one: len(one.refusals), default=None)


def by_weight(candidate: Judged) -> list[Refusal]:
    def weight(refusal: Refusal) -> int:
        return _WEIGHT.index(refusal.kind) if refusal.kind in _WEIGHT else len(_WEIGHT)

    return sorted(candidate.refusals, key=weight)


def sentences(refusals: Sequence[Refusal]) -> str:
    return "; it ".join(refusal.sentence for refusal in refusals)
