"""Bytes as people say them."""

from __future__ import annotations

_MIB = 1024 * 1024


def size(count: float) -> str:
    """Bytes: "3.1 GiB", "412 MiB", "9.4 MiB", "87 KiB"."""
    if count >= 1024 * _MIB:
        return f"{count / 1024 / _MIB:.1f} GiB"
    if count >= _MIB:
        return f"{count / _MIB:.0f} MiB" if count >= 100 * _MIB else f"{count / _MIB:.1f} MiB"
    return f"{max(1, round(count / 1024)) if count else 0} KiB"
