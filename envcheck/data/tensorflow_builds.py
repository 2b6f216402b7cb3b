"""What a public TensorFlow does not say of itself: cuDNN's minor, and whether it looks into the wheels."""

from __future__ import annotations

import msgspec
from packaging.version import Version

from . import rows


class PublicTensorFlow(msgspec.Struct, frozen=True):
    """cudnn: "8.1", or "" where the wheel itself tells it."""

    first: Version
    last: Version
    cudnn: str
    into_wheels: bool
    source: str


def build_of(version: Version) -> PublicTensorFlow | None:
    """The row of a public version; None for one that no row is about, and for a local build."""
    every = () if version.local else rows("tensorflow_builds", PublicTensorFlow)
    return next((row for row in every if row.first <= version <= row.last), None)
