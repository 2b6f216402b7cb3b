"""Checks on the driver: NVML, nvidia-smi, libcuda, and whether they agree."""

from __future__ import annotations

from ..registry import Area

AREA = Area(name="driver", title="Driver", position=40)
