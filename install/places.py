"""Where envcheck keeps things: caches, environments and state, by the XDG base directories."""

from __future__ import annotations

import os
from pathlib import Path

from ..exit_codes import Cannot


def cache() -> Path:
    """``$XDG_CACHE_HOME/envcheck``: the store and uv's unpacked wheels; all of it can be had again."""
    return _base("XDG_CACHE_HOME", ".cache")


def environments() -> Path:
    """``$XDG_DATA_HOME/envcheck/envs``: one directory for each named environment."""
    return _base("XDG_DATA_HOME", ".local/share") / "envs"


def state() -> Path:
    """``$XDG_STATE_HOME/envcheck``: what was installed where."""
    return _base("XDG_STATE_HOME", ".local/state")


def store() -> Path:
    """Every file once fetched, by its sha256."""
    return cache() / "store"


def uv_cache() -> Path:
    """uv's own cache of unpacked wheels, which environments are linked from."""
    return cache() / "uv"


def _base(variable: str, default: str) -> Path:
    chosen = os.environ.get(variable, "")
    # The specification has relative paths ignored.
    return (Path(chosen) if chosen.startswith("/") else home() / default) / "envcheck"


def home() -> Path:
    """The user's home directory. Raises Cannot where none is known: a container's nameless user."""
    try:
        return Path.home()
    except RuntimeError:
        raise Cannot(
            f"HOME is not set, and user {os.getuid()} has no home directory",
            hint="set HOME, or XDG_CACHE_HOME, XDG_DATA_HOME and XDG_STATE_HOME",
        ) from None
