"""What the registry holds under NVIDIA's and TensorFlow's names, and how those names are made."""

from __future__ import annotations

import re
from functools import cache

import msgspec
from packaging.version import Version

from . import table
from .versions import parse_version

# How the tables are cited.
NVIDIA_INDEX = "https://pypi.nvidia.com"  # which has what is not on the public index
NAMES_SOURCE = "the registry's NVIDIA names as of 2026-11 (pypi_nvidia_names.csv)"
WHEELS_SOURCE = "metadata of the tensorflow wheels 2.13.1 to 2.22.0rc0 (pypi_tf.csv)"

# Distributions that install the same top-level ``tensorflow`` package over each other.
TENSORFLOWS = frozenset(
    (
        "tensorflow",
        "tensorflow-gpu",
        "tensorflow-cpu",
        "tensorflow-rocm",
        "tensorflow-aarch64",
        "tensorflow-cpu-aws",
        "intel-tensorflow",
        "intel-tensorflow-avx512",
        "nvidia-tensorflow",
        "tf-nightly",
        "tf-nightly-cpu",
        "tf-nightly-gpu",
    )
)

# Components whose wheels carry CUDA's own version number; the others number themselves.
_NUMBERED_AS_CUDA = frozenset(
    ("cublas", "cuda-cupti", "cuda-nvcc", "cuda-nvrtc", "cuda-runtime", "nvjitlink")
)


class Component(msgspec.Struct, frozen=True):
    """What a distribution's name says: ``nvidia-cublas-cu114`` is cublas for CUDA 11.4.

    name: "cublas", "cuda-runtime", "cudnn", "nccl", ...; suffix: "114", "12" or "" (no suffix).
    """

    name: str
    suffix: str

    @property
    def generation(self) -> str:
        """How NVIDIA named its wheels when this name was in use, as nvidia-tensorflow's months tell."""
        if not self.suffix:
            return "unsuffixed (2020, and CUDA 13)"
        return f"-cu{self.suffix}" if len(self.suffix) == 2 else "-cu<MAJMIN> (22.01 to 22.05)"


class Placeholder(msgspec.Struct, frozen=True):
    """A version that holds a name on the registry and is not the software."""

    name: str
    version: str
    why: str
    source: str


def _normalized(name: str) -> str:
    """packaging.utils.canonicalize_name, without the 12 ms that importing it takes."""
    return re.sub(r"[-_.]+", "-", name).lower()


def component(name: str) -> Component | None:
    """The NVIDIA component that a distribution's name stands for, or None."""
    found = re.fullmatch(r"nvidia-([a-z0-9-]+?)(?:-cu(\d{2,3}))?", _normalized(name))
    return Component(found[1], found[2] or "") if found else None


def cuda_major(name: str, version: str) -> int | None:
    """The CUDA major that an NVIDIA library wheel is for; None where its name and version do not say."""
    part = component(name)
    if part is None:
        return None
    if part.suffix:
        return int(part.suffix[:2])
    parsed = parse_version(version)
    if parsed is None:
        return None
    if part.name in _NUMBERED_AS_CUDA:
        return parsed.major or None
    first, last = _real_range(_normalized(name))
    if first is None or last is None:
        return None
    # Unsuffixed wheels came from NVIDIA's own index for CUDA 11 (2020), and again since CUDA 13.
    if first <= parsed:
        return 13 if parsed <= last else None
    return 11 if parsed.major > 0 else None


def placeholder(name: str, version: str) -> Placeholder | None:
    """Why this version of this distribution is no software at all; None for a real one."""
    normalized = _normalized(name)
    parsed = parse_version(version)
    if parsed is None:
        return None
    if parsed.major == 99 and normalized.startswith("nvidia-"):
        why = "it outranks every real version and pulls in something else"
        return Placeholder(name, version, why, "pypi_nvidia_names.csv")
    row = _names().get(normalized)
    if row is not None and parsed in _versions(row["placeholder_versions"]):
        return Placeholder(name, version, "it only holds the name", "pypi_nvidia_names.csv")
    return None


@cache
def unregistered() -> tuple[str, ...]:
    """NVIDIA's names that nobody held on the registry when they were looked up: anybody can take them."""
    absent = (name for name, row in _names().items() if row["status_2026_11_20"] == "ABSENT(404)")
    return tuple(sorted(absent))


@cache
def placeholders() -> dict[str, tuple[str, ...]]:
    """NVIDIA's names on the registry whose highest version is no software, with all such versions."""
    listed = {
        name: sorted(_versions(row["placeholder_versions"])) for name, row in _names().items()
    }
    return {
        name: tuple(map(str, versions))
        for name, versions in listed.items()
        if versions and (_real_range(name)[1] is None or versions[-1].major == 99)
    }


@cache
def _names() -> dict[str, dict[str, str]]:
    return {_normalized(row["name"]): row for row in table("pypi_nvidia_names")}


def _real_range(normalized: str) -> tuple[Version | None, Version | None]:
    """First and last real version of a name: "13.0.0.19(2025-08-04)..13.10.0.20(2026-11-04) n=24"."""
    text = _names().get(normalized, {}).get("real_versions", "")
    found = re.match(r"([^(\s]+)\([^)]*\)\.\.([^(\s]+)\(", text)
    return (parse_version(found[1]), parse_version(found[2])) if found else (None, None)


@cache
def _versions(text: str) -> frozenset[Version]:
    return frozenset(
        version for word in text.split() if (version := parse_version(word)) is not None
    )
