"""The GPUs that the tables know, a row a product (``products.csv``): names, class, memory, NVLinks, power."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from . import rows, table


class Product(msgspec.Struct, frozen=True):
    """One product. 0 and "" stand for what no source was seen for.

    not_known: what no source says of it at all: "class" (data centre or not), "board", "rates" (gpus.csv).
    board: "module": on a baseboard that wires its NVLinks; "card": in a slot, with NVLinks only where a
    bridge joins two. nvlinks: those of one GPU, None where not known. nvswitch: its baseboards of eight,
    or its racks, have NVSwitches.
    """

    gpu: str
    pattern: str
    not_known: tuple[str, ...]
    data_centre: Literal["yes", "no", ""]
    board: Literal["module", "card", ""]
    data_centre_source: str
    source: str
    memory_gb: int = 0
    nvlinks: int | None = None
    nvlink_generation: int = 0
    nvswitch: bool = False
    pcie_generation: int = 0
    pcie_lanes: int = 0
    power_w: int = 0


def products() -> tuple[Product, ...]:
    return rows("products", Product)


@lru_cache(maxsize=64)
def named(name: str) -> Product | None:
    """The product that the driver calls by this name ("NVIDIA A100-SXM4-80GB"); None for an unknown one."""
    return next((one for one in products() if re.search(one.pattern, name.strip())), None)


def product(name: str) -> Product | None:
    """The same, where it is known what the product is sold as."""
    found = named(name)
    return found if found is not None and found.board else None


@lru_cache(maxsize=64)
def is_data_centre(name: str) -> bool | None:
    """Whether it is a data-centre GPU, which alone may run a newer libcuda than its driver's."""
    found = named(name)
    if found is not None:
        answer: str = found.data_centre
    else:
        series = (row for row in table("data_centre_gpus") if _is_of(row["pattern"], name))
        answer = next((row["data_centre"] for row in series), "")
    return {"yes": True, "no": False}.get(answer)


def _is_of(pattern: str, name: str) -> bool:
    return re.search(pattern, name, re.IGNORECASE) is not None
