"""Which file names (SONAMEs) a CUDA version's libraries have: what a framework asks the loader for.

Source: cuda_sonames.csv, from the wheels' files and from loader messages that users reported.
"""

from __future__ import annotations

import re
from functools import cache

from . import table

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


def component_of(library: str) -> str | None:
    """The wheel component of a library name ("libcudnn_ops") or SONAME ("libcudnn.so.8"), or None."""
    name = library.partition(".so")[0]
    if name.startswith("libcudnn"):
        name = "libcudnn"
    if name.startswith("libnvrtc"):
        name = "libnvrtc"
    return COMPONENT.get(name)


@cache
def sonames(cuda: str) -> dict[str, str]:
    """{"libcublas": "libcublas.so.12", ...} of a CUDA version such as "12.5.1"; {} where not known."""
    key = _key(cuda)
    if key is None:
        return {}
    found = {}
    for row in table("cuda_sonames"):
        first, last = _key(row["cuda_first"]), _key(row["cuda_last"])
        if first is not None and last is not None and first <= key <= last:
            found[row["library"]] = row["soname"]
    return found


def _key(cuda: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", cuda)
    return (int(found[1]), int(found[2])) if found else None
