"""What ``tensorflow`` 2.13.1 and later say of themselves, read from the wheels: pypi_tf.csv."""

from __future__ import annotations

import re

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from . import rows
from .versions import parse_version

_COLUMNS = {
    "version": "tensorflow",
    "python_tags": "linux_x86_64_wheels",
    "cuda": "cuda_built",
    "cudnn": "cudnn_built_major",
    "capabilities": "cuda_compute_capabilities",
    "tensorrt": "is_tensorrt_build",
    "tensorrt_pins": "and_cuda_tensorrt_pins",
}


class TensorFlowBuild(msgspec.Struct, frozen=True, rename=_COLUMNS):
    """One ``tensorflow`` release on the registry; "" and None are not known."""

    version: Version
    requires_python: SpecifierSet
    python_tags: tuple[str, ...]
    cuda: str  # "12.5.1"
    cudnn: str  # major: "9"
    capabilities: tuple[str, ...]
    tensorrt_pins: tuple[Requirement, ...]  # of [and-cuda]
    and_cuda: tuple[Requirement, ...]  # the NVIDIA wheels that [and-cuda] names
    note: str
    source: str
    tensorrt: bool | None = None


def tensorflow_builds() -> tuple[TensorFlowBuild, ...]:
    """Every ``tensorflow`` of pypi_tf.csv, oldest first."""
    return rows("pypi_tf", TensorFlowBuild)


def tensorflow_build(version: str | Version) -> TensorFlowBuild | None:
    """The row of exactly this ``tensorflow`` version (a local part such as ``+nv25.2`` is another)."""
    wanted = parse_version(version)
    return next((row for row in tensorflow_builds() if row.version == wanted), None)


def oldest_glibc(build: TensorFlowBuild) -> Version | None:
    """The oldest glibc that its wheels run on, by their file names; None where no name is known."""
    tags = re.findall(r"manylinux_(\d+)_(\d+)_x86_64|(manylinux2014)_x86_64", build.source)
    return min(
        (Version("2.17" if old else f"{major}.{minor}") for major, minor, old in tags), default=None
    )
