"""The report as JSON, and its JSON Schema."""

from __future__ import annotations

from typing import Any

import msgspec

from .. import json_text
from .model import Report


def render(report: Report) -> str:
    """Deterministic JSON text."""
    return json_text.render(report)


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every report obeys."""
    generated = msgspec.json.schema(Report)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The report of envcheck doctor",
        **generated,
    }
