"""Lists of host names, folded as Slurm and clush write them: "gpu[01-16,20]"."""

from __future__ import annotations

from collections.abc import Iterable


def folded(names: Iterable[str]) -> str:
    return ",".join(sorted(names))
