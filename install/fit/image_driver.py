"""What an image's own variable NVIDIA_REQUIRE_CUDA says that it needs.

Source: NVIDIA's container toolkit, which documents it.
"""

from __future__ import annotations

import re

from packaging.specifiers import Specifier

from ...data.products import is_data_centre
from ...data.versions import parse_version
from ...exit_codes import Cannot
from ...facts.snapshot import Snapshot
from ..registry.image import Image
from .gpu_rules import UPDATE
from .machine import machine_of
from .models import FitMachine

_CONDITION = re.compile(r"(cuda|driver)([<>]=?\d{1,9}(?:\.\d{1,9}){0,3})")
_SHOWN = 200  # characters of what an image requires


def check_driver(image: Image, snapshot: Snapshot) -> None:
    """Refuse what the image requires of the driver by NVIDIA_REQUIRE_CUDA and this one has not. Raises
    Cannot. What is not known of the machine refuses nothing."""
    require = image.environment.get("NVIDIA_REQUIRE_CUDA", "")
    machine = machine_of(snapshot)
    disabled = image.environment.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "t", "true")
    # Alternatives: "cuda>=12.1 brand=tesla,driver>=470,driver<471".
    alternatives = [
        {_holds(condition, machine) for condition in words.split(",")} for words in require.split()
    ]
    if disabled or not alternatives or not all(False in known for known in alternatives):
        return
    shown = require if len(require) <= _SHOWN else f"{require[:_SHOWN]}…"
    raise Cannot(
        f"{image.reference} requires another driver: its NVIDIA_REQUIRE_CUDA is {shown!r}, and driver"
        f" {machine.driver} supports CUDA {machine.driver_cuda} at most",
        f"{UPDATE}; or take an image for an older CUDA",
    )


def _holds(condition: str, machine: FitMachine) -> bool | None:
    """Whether a condition holds; None: not known."""
    if condition.startswith("brand="):
        # Every product line of data-centre GPUs has had its own name, and each is Tesla to the requirement.
        centre = [is_data_centre(name) for name in machine.names]
        of_tesla = (
            False if False in centre else all(centre) if centre and None not in centre else None
        )
        if condition == "brand=tesla":
            return of_tesla
        return False if of_tesla else None
    found = _CONDITION.fullmatch(condition)
    if found is None or (found[1] == "driver" and machine.windows_driver):
        return None
    have = machine.driver_version if found[1] == "driver" else parse_version(machine.driver_cuda)
    return None if have is None else Specifier(found[2]).contains(have)
