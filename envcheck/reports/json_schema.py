"""The JSON Schemas of what envcheck writes as JSON."""

from __future__ import annotations

import importlib
from typing import Any

import msgspec

# The module and the name of each type, and what its JSON is.
SCHEMAS = {
    "snapshot": ("..facts.snapshot:Snapshot", "A Snapshot of envcheck"),
    "report": (".model:Report", "The report of envcheck doctor"),
    "bench": (".bench_model:BenchReport", "The report of envcheck bench"),
    "fleet": ("..fleet.model:FleetResult", "The result of envcheck fleet doctor"),
    "network": ("..fleet.network.model:NetworkResult", "The result of envcheck fleet network"),
    "diff": (".diff_model:DiffReport", "The report of envcheck diff"),
}


def schema(which: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that all JSON of this kind obeys."""
    place, title = SCHEMAS[which]
    module, _, name = place.partition(":")
    described = msgspec.json.schema(getattr(importlib.import_module(module, __package__), name))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **described,
    }
