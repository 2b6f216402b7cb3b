"""The attributes of a machine and its target, from a Snapshot alone."""

from __future__ import annotations

from ..facts.base import Unavailable
from ..facts.view import SnapshotView
from ..profiles.keys import SECTIONS
from .model import Attribute


def attributes(view: SnapshotView) -> list[Attribute]:
    """Every key of a profile that this machine has a value for."""
    found = []
    for name, section in SECTIONS.items():
        for key in () if section.many else section.keys:
            value = key.fact(view)
            if not isinstance(value, Unavailable) and value != "":
                found.append(Attribute(key=f"{name}.{key.name}", words=key.words, value=str(value)))
    return found
