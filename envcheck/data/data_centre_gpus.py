"""Which GPUs are data-centre GPUs, which alone may run a newer libcuda than their driver's."""

from __future__ import annotations

import re
from functools import cache

from . import table


@cache
def is_data_centre(name: str) -> bool | None:
    """Of a GPU as the driver names it ("NVIDIA A100-SXM4-80GB"); None where no source says.

    From ``data_centre_gpus.csv``, whose first row that matches decides.
    """
    for row in table("data_centre_gpus"):
        if re.search(row["pattern"], name, re.IGNORECASE):
            return {"yes": True, "no": False}.get(row["data_centre"])
    return None
