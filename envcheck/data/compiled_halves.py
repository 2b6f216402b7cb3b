"""Packages of which half is compiled at installation, and how that is built: compiled_halves.csv."""

from __future__ import annotations

import msgspec

from . import rows


class CompiledHalf(msgspec.Struct, frozen=True):
    """needed: the package does nothing without it. place: where its source is, if not on PyPI.

    alone: it computes without PyTorch; what is built for GPUs is always linked to CUDA. "-f" of its
    options is an index of ready builds, in which {cu} stands for "cu118" and {torch} for "2.1.0".
    """

    distribution: str
    needed: bool
    alone: bool
    variables: str
    options: str
    place: str
    source: str


def compiled_half(distribution: str) -> CompiledHalf | None:
    every = rows("compiled_halves", CompiledHalf)
    return next((row for row in every if row.distribution == distribution), None)
