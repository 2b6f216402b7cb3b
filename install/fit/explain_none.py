"""Why nothing fits, in few words; and what it means that a user names a release all the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from .models import AnyRelease, JudgedRelease, R, Refusal

# What says most about why nothing works here comes first.
_WEIGHT = ("gpu", "architecture", "libc", "cpu", "driver", "capability", "place", "disk", "python")

# The keys of a release's ``sister``: those with this prefix are what its branch's README builds with.
_README = "readme-build-"
_LIBRARIES = {"cuda": "CUDA", "cudnn": "cuDNN", "tensorrt": "TensorRT"}


def why_none(candidates: Sequence[JudgedRelease[Any]]) -> str:
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


def nearest(candidates: Sequence[JudgedRelease[R]]) -> JudgedRelease[R] | None:
    """The release with the fewest reasons against it; the newest of those."""
    return min(candidates, key=lambda one: len(one.refusals), default=None)


def by_weight(candidate: JudgedRelease[Any]) -> list[Refusal]:
    def weight(refusal: Refusal) -> int:
        return _WEIGHT.index(refusal.kind) if refusal.kind in _WEIGHT else len(_WEIGHT)

    return sorted(candidate.refusals, key=weight)


def sentences(refusals: Sequence[Refusal]) -> str:
    return "; it ".join(refusal.sentence for refusal in refusals)


def named(candidate: JudgedRelease[R]) -> JudgedRelease[R]:
    """The candidate as it stands when its user names it: what naming overrides becomes a note."""
    overridden = [refusal for refusal in candidate.refusals if refusal.overridable]
    if not overridden:
        return candidate
    notes = [f"{candidate.release.release} {refusal.sentence}." for refusal in overridden]
    if any(refusal.kind == "not-known" for refusal in overridden):
        notes += sister(candidate.release)
    return msgspec.structs.replace(
        candidate,
        refusals=[refusal for refusal in candidate.refusals if not refusal.overridable],
        notes=[*notes, *candidate.notes],
    )


def sister(release: AnyRelease) -> list[str]:
    """What others say in the place of what is not known: shown as such, and nothing rests on it."""
    said: dict[str, list[str]] = {"": [], _README: []}
    for key, value in release.sister.items():
        prefix = _README if key.startswith(_README) else ""
        name = key.removeprefix(prefix)
        if value:
            said[prefix].append(f"{_LIBRARIES.get(name, name)} {value}")
    return [
        f"{who}: {', '.join(values)}; not confirmed."
        for who, values in zip(("Same-month base image", "Its README"), said.values(), strict=True)
        if values
    ]
