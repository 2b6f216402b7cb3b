"""What a kernel's name says of the unit that it runs on: from ``kernel_names.csv``.

A bare "xmma", "mma" or "gemm" says nothing: cuBLAS has kernels on CUDA cores by all of these names.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from ..data import table

Class = Literal[
    "tensor",  # a product on Tensor Cores
    "simt",  # a product on CUDA cores
    "auxiliary",  # no product: it copies, converts, fills, or adds the slices of one
    "unknown",
]


LOOKED_AT = 2000  # characters; what tells the unit stands in front of a template's arguments


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(row["pattern"]), row["class"]) for row in table("kernel_names"))


def classes(name: str) -> set[str]:
    """Every class that a pattern of the table puts the name in: at most one, if the table is sound."""
    return {found for pattern, found in _patterns() if pattern.search(name[:LOOKED_AT])}


@cache
def classify(name: str) -> Class:
    """The class of a kernel's name, as CUPTI gives it: mangled, demangled or plain."""
    found = classes(name)
    if found == {"tensor"}:
        return "tensor"
    if found == {"simt"}:
        return "simt"
    return "auxiliary" if found == {"auxiliary"} else "unknown"
