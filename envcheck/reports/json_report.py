"""The report as JSON, and its JSON Schema."""

from __future__ import annotations

from typing import Any

import msgspec

from .model import Report


def render(report: Report) -> str:
    """Deterministic JSON text: in the structs' own order, indented by two, a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every report obeys."""
    generated = msgspec.json.schema(Report)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The report of envcheck doctor",
        **generated,
    }
