"""Which compute capability a GPU has, by its name, where nobody could ask it: from ``gpus.csv``."""

from __future__ import annotations

import re
from functools import lru_cache

from . import table

# Words of a GPU's name that say nothing about its multiprocessors: maker, memory, form, edition.
_ASIDE = re.compile(
    r"\([^()]*\)|\b(nvidia|tesla|quadro(?= rtx a)|sxm\d?|pcie|nvl|ac|hbm\d\w?|generation|edition"
    r"|\d+(/\d+)? ?gb)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=256)
def model(name: str) -> frozenset[str]:
    """A GPU's name without what does not tell models apart; "Laptop", "Max-Q" and "D" stay in it."""
    return frozenset(re.split(r"[\s-]+", _ASIDE.sub(" ", name.replace("-", " ")).lower().strip()))


@lru_cache(maxsize=256)
def capability_of(name: str, architecture: str = "") -> tuple[str, str]:
    """("9.0", the table that says so) of a product's name, else of an architecture that has but one."""
    of_name = {
        row["compute_capability"] for row in table("gpus") if model(row["gpu"]) == model(name)
    }
    if len(of_name) == 1:
        return of_name.pop(), "envcheck/data/gpus.csv, by the product's name"
    of_architecture = {
        row["compute_capability"]
        for row in table("capabilities")
        if architecture and row["architecture"] == architecture
    }
    if len(of_architecture) == 1:
        return of_architecture.pop(), "envcheck/data/capabilities.csv, by the architecture"
    return "", ""
