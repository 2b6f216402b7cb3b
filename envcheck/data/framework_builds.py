"""Builds of PyTorch and JAX that have code for GPUs, and what installs each: framework_builds.csv."""

from __future__ import annotations

import msgspec
from packaging.version import Version

from . import rows


class FrameworkBuild(msgspec.Struct, frozen=True):
    """A release of a framework for one CUDA. requirement and options: what pip and uv install it by.

    pythons: "3.10". glibc: the oldest that its wheels run on. capabilities: "sm_80" has machine code,
    "compute_120" PTX. beside: requirements of the packages that follow its version. needs: what it does not
    bring. conda: what conda installs it by ("" where no source says so).
    """

    framework: str
    version: Version
    pythons: tuple[str, ...]
    glibc: Version
    architectures: tuple[str, ...]
    cuda: str
    capabilities: tuple[str, ...]
    requirement: str
    beside: tuple[str, ...]
    needs: str
    options: str
    conda: str
    source: str


def framework_builds(framework: str) -> tuple[FrameworkBuild, ...]:
    """Those of ``framework`` ("torch"), oldest first."""
    return tuple(
        row for row in rows("framework_builds", FrameworkBuild) if row.framework == framework
    )
