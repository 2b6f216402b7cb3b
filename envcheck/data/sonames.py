"""Which file names (SONAMEs) a CUDA version's libraries have: what a framework asks the loader for."""

from __future__ import annotations

from functools import cache

import msgspec
from packaging.version import Version

from . import rows
from .versions import release_of

# The distribution's component that carries each library (nvidia-COMPONENT-cuNN).
COMPONENT = {
    "libcudart": "cuda-runtime",
    "libcublas": "cublas",
    "libcublasLt": "cublas",
    "libcudnn": "cudnn",
    "libcufft": "cufft",
    "libcurand": "curand",
    "libcusolver": "cusolver",
    "libcusparse": "cusparse",
    "libcupti": "cuda-cupti",
    "libnvrtc": "cuda-nvrtc",
    "libnvJitLink": "nvjitlink",
    "libnccl": "nccl",
}


# How the names of the libraries' own functions begin, where it is not as the library's; the longer first.
_SYMBOLS = {"nvJitLink": "libnvJitLink", "cublasLt": "libcublasLt", "cuda": "libcudart"} | {
    name: f"lib{name}"
    for name in [
        "cublas",
        "cudnn",
        "cusparse",
        "cusolver",
        "cufft",
        "curand",
        "nvrtc",
        "cupti",
        "nccl",
    ]
}


class Soname(msgspec.Struct, frozen=True):
    cuda_first: Version
    cuda_last: Version
    library: str
    soname: str


def component_of(library: str) -> str | None:
    """The wheel component of a library name ("libcudnn_ops") or SONAME ("libcudnn.so.8"), or None."""
    name = library.partition(".so")[0]
    whole = next((one for one in ("libcudnn", "libnvrtc") if name.startswith(one)), name)
    return COMPONENT.get(whole)


@cache
def sonames(cuda: str) -> dict[str, str]:
    """{"libcublas": "libcublas.so.12", ...} of a CUDA version such as "12.5.1"; {} where not known."""
    version = release_of(cuda)
    if version is None:
        return {}
    minor = Version(f"{version.major}.{version.minor}")
    every = rows("cuda_sonames", Soname)
    return {row.library: row.soname for row in every if row.cuda_first <= minor <= row.cuda_last}


def provider(symbol: str, version: str) -> str:
    """The library that a symbol is of, by the version it asks for ("libnvJitLink.so.12"), or its name."""
    if version.startswith("lib"):
        return version.partition(".so")[0]
    bare = symbol.removeprefix("__")
    return next((name for start, name in _SYMBOLS.items() if bare.startswith(start)), "")
