"""The texts that are written from a template: NAME.template beside this file, with "@" before each value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template


class _AtTemplate(Template):
    delimiter = "@"


def fill(name: str, values: Mapping[str, str]) -> str:
    """The template with these values in it, as they are."""
    text = (Path(__file__).parent / f"{name}.template").read_text(encoding="utf-8")
    return _AtTemplate(text).substitute(values)
