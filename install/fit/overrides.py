"""What it means that a user names a release: some reasons against it become notes."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from .models import AnyRelease, Judged, Refusal

C = TypeVar("C", bound=Judged)

# The keys of a release's ``sister``: those with this prefix are what its branch's README builds with.
_README = "readme-build-"
_LIBRARIES = {"cuda": "CUDA", "cudnn": "cuDNN", "tensorrt": "TensorRT"}


def named(candidate: C) -> C:
    """The candidate as it stands when its user names it: what naming overrides becomes a note."""
    overridden = [refusal for refusal in candidate.refusals if refusal.overridable]
    if not overridden:
        return candidate
    notes = [_as_note(candidate.release, refusal) for refusal in overridden]
    if any(refusal.kind == "not-known" for refusal in overridden):
        notes += sister(candidate.release)
    return msgspec.structs.replace(
        candidate,
        refusals=[refusal for refusal in candidate.refusals if not refusal.overridable],
        notes=[*notes, *candidate.notes],
    )


def _as_note(release: AnyRelease, refusal: Refusal) -> str:
    return f"{release.release} {refusal.sentence}."


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
