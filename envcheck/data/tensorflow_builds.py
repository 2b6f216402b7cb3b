"""What a public TensorFlow does not say of itself: cuDNN's minor, and whether it looks into the wheels."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from packaging.version import Version

from . import table


class PublicTensorFlow(NamedTuple):
    """cudnn: "8.1", or "" where the wheel itself tells it."""

    first: Version
    last: Version
    cudnn: str
    into_wheels: bool
    source: str


def build_of(version: Version) -> PublicTensorFlow | None:
    """The row of a public version; None for one that no row is about, and for a local build."""
    if version.local:
        return None
    return next((row for row in _rows() if row.first <= version <= row.last), None)


@cache
def _rows() -> tuple[PublicTensorFlow, ...]:
    return tuple(
        PublicTensorFlow(
            Version(row["first"]),
            Version(row["last"]),
            row["cudnn"],
            row["into_wheels"] == "yes",
            row["source"],
        )
        for row in table("tensorflow_builds")
    )
