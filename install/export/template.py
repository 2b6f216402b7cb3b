"""The texts written from a template of ``templates/``: a bundle's setup.sh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from ... import safe_text


def render(name: str, **values: Any) -> str:
    """A template with these values; whatever a value holds, it stays on its line."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # no HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name).render(_safe(values))


def _safe(value: Any) -> Any:
    """With all of its texts on one line each."""
    if isinstance(value, dict):
        return {_safe(key): _safe(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_safe(one) for one in value]
    return safe_text.escaped(value) if isinstance(value, str) else value
