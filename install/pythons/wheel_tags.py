"""Which wheels an interpreter takes, from what it says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.tags import compatible_tags, cpython_tags

# PEP 600: the older names of these, and the oldest glibc that any wheel is tagged for.
_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
_OLDEST_GLIBC = {"x86_64": (2, 5), "i686": (2, 5)}
_OLDEST_ELSEWHERE = (2, 17)


def tags(
    version: str, abi: str, architecture: str, glibc: str, *, debug: bool = False
) -> list[str]:
    """The tags of the wheels that a CPython takes, best first: "cp38-cp38-manylinux_2_17_x86_64".

    abi: its SOABI, "cpython-36m-x86_64-linux-gnu". glibc: "2.36"; "" where it has another C library, for
    which only wheels without machine code are listed. Empty where version or ABI cannot be read.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    flavour = re.match(r"cpython-(\w+)", abi)
    if found is None or flavour is None:
        return []
    python = (int(found[1]), int(found[2]))
    abis = [f"cp{flavour[1]}"]
    if debug and python >= (3, 8):  # a debug build also loads the extensions of a normal one
        abis.append(abis[0].replace("d", ""))
    platforms = [f"linux_{architecture}", *_manylinux(architecture, glibc)]
    own = cpython_tags(python, abis, platforms)
    pure = compatible_tags(python, f"cp{python[0]}{python[1]}", platforms)
    return [str(tag) for listed in (own, pure) for tag in listed]


def _manylinux(architecture: str, glibc: str) -> Iterator[str]:
    found = re.fullmatch(r"2\.(\d+)(\..*)?", glibc)
    if found is None:
        return
    oldest = _OLDEST_GLIBC.get(architecture, _OLDEST_ELSEWHERE)
    for minor in range(int(found[1]), oldest[1] - 1, -1):
        yield f"manylinux_2_{minor}_{architecture}"
        if legacy := _LEGACY.get((2, minor)):
            yield f"{legacy}_{architecture}"
