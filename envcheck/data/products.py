"""What a GPU is sold as, from ``products.csv``: its memory, NVLinks, PCIe lanes and power limit."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from . import table


class SoldAs(NamedTuple):
    """One product. 0 and "" stand for what no source was seen for.

    board: "module": on a baseboard that wires its NVLinks; "card": in a slot, with NVLinks only where a
    bridge joins two. nvlinks: those of one GPU, None where not known. nvswitch: its baseboards of eight,
    or its racks, have NVSwitches.
    """

    board: Literal["module", "card"]
    memory_gb: int
    nvlinks: int | None
    nvlink_generation: int
    nvswitch: bool
    pcie_generation: int
    pcie_lanes: int
    power_w: int
    source: str


@lru_cache(maxsize=64)
def product(name: str) -> SoldAs | None:
    """The product that nvidia-smi calls by this name; None where the table does not have it."""
    for row in table("products"):
        if re.search(row["pattern"], name.strip()):
            return SoldAs(
                "module" if row["board"] == "module" else "card",
                int(row["memory_gb"] or 0),
                int(row["nvlinks"]) if row["nvlinks"] else None,
                int(row["nvlink_generation"] or 0),
                row["nvswitch"] == "yes",
                int(row["pcie_generation"] or 0),
                int(row["pcie_lanes"] or 0),
                int(row["power_w"] or 0),
                row["source"],
            )
    return None
