"""Checks on what GPUs reach each other through: the network, RDMA adapters, and NCCL's settings."""

from __future__ import annotations

from ..registry import Area

AREA = Area(
    name="network",
    title="Network",
    position=75,
)
