"""A fleet's result for programs."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from ... import json_text
from ..model import FleetResult


def render(result: FleetResult, *, verbose: bool = False) -> str:
    """verbose: with the machines' attributes and rates, which are most of it."""
    if not verbose:
        machines = [replace(machine, attributes=[], rates=[]) for machine in result.machines]
        result = replace(result, machines=machines)
    return json_text.render(result)


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every result obeys."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The result of envcheck fleet doctor",
        **msgspec.json.schema(FleetResult),
    }
