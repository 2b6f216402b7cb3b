"""Checks on the PCI bus: is there a GPU, who drives it, does it answer."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="pci", title="PCI", position=20)
