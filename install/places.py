"""Where envcheck keeps things: caches, environments and state, by the XDG base directories."""

from __future__ import annotations

import os
from pathlib import Path

from ..exit_codes import Cannot

_VARIABLES = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_HINT = "set HOME, or XDG_CACHE_HOME, XDG_DATA_HOME and XDG_STATE_HOME"


def cache() -> Path:
    """``$XDG_CACHE_HOME/envcheck``: uv's cache and downloads; all of it can be fetched again."""
    return _base("XDG_CACHE_HOME", ".cache")


def environments() -> Path:
    """``$XDG_DATA_HOME/envcheck/envs``: one directory for each named environment."""
    return _base("XDG_DATA_HOME", ".local/share") / "envs"


def state() -> Path:
    """``$XDG_STATE_HOME/envcheck``: what was installed where."""
    return _base("XDG_STATE_HOME", ".local/state")


def downloads() -> Path:
    """Files that envcheck fetched itself, for bundles and pip, by their sha256."""
    return cache() / "downloads"


def uv_cache() -> Path:
    """uv's own cache of unpacked wheels, which environments are linked from."""
    return cache() / "uv"


def _base(variable: str, default: str) -> Path:
    chosen = os.environ.get(variable, "")
    # The specification has relative paths ignored.
    return (Path(chosen) if chosen.startswith("/") else home() / default) / "envcheck"


def check_home() -> None:
    """Called before anything is written: a home that is missing, or another user's, is left alone.

    A home counts as one's own where root owns it, too: who may write to it was root's choice. Raises Cannot;
    not where all three XDG variables are set, which leaves nothing to the home.
    """
    if all(os.environ.get(name, "").startswith("/") for name in _VARIABLES):
        return
    place = home()
    try:
        owner = place.stat().st_uid
    except OSError as error:
        raise Cannot(f"HOME is {place}, which cannot be used: {error.strerror}", _HINT) from None
    if not (place.is_absolute() and place.is_dir()):
        raise Cannot(f"HOME is {place}, which is not a directory with an absolute path", _HINT)
    if owner not in (os.geteuid(), 0):
        raise Cannot(
            f"HOME is {place}, which belongs to user {owner}, and envcheck runs as user"
            f" {os.geteuid()}: what it wrote there would be in the other's way",
            f"sudo -H sets HOME; {_HINT}",
        )


def home() -> Path:
    """The user's home directory. Raises Cannot where none is known: a container's nameless user."""
    try:
        return Path.home()
    except RuntimeError:
        raise Cannot(
            f"HOME is not set, and user {os.getuid()} has no home directory",
            hint=_HINT,
        ) from None
