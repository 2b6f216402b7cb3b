"""Evidence: the facts that a finding rests on, as a reader sees them."""

from __future__ import annotations

import msgspec


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """One fact that a finding rests on: its path in the Snapshot, its value, where it came from."""

    fact: str  # "machine.kernel.driver_version"
    value: str
    source: str = ""
