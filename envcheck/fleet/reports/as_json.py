"""A fleet's result for programs."""

from __future__ import annotations

from msgspec.structs import replace

from ... import json_text
from ..model import FleetResult


def render(result: FleetResult, *, verbose: bool = False) -> str:
    """verbose: with the machines' attributes and rates, which are most of it."""
    if not verbose:
        machines = [
            replace(machine, attributes=[], rates=[], cards=[]) for machine in result.machines
        ]
        result = replace(result, machines=machines)
    return json_text.render(result)
