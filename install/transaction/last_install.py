"""Where the environment that envcheck installed last stands.

`envcheck install` writes the file after the new environment has verified; `envcheck doctor` without
``--target`` reads it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ...exit_codes import Cannot, UsageError
from .. import durable, places
from . import guard
from .layout import Root


class LastInstall(msgspec.Struct, frozen=True):
    """The record: ``prefix`` is the environment's directory."""

    prefix: str


def record_path() -> Path:
    """``$XDG_STATE_HOME/envcheck/last-install.json``."""
    return places.state() / "last-install.json"


def read() -> str | None:
    """The prefix of the environment installed last, or None where there is no such record.

    Also where the directory belongs to another user by now, who would have us start what lies in it.
    """
    prefix = _recorded()
    try:
        if prefix is not None:
            guard.check_owner(Root(Path(prefix).parent))
    except (OSError, UsageError):
        return None
    return prefix


def _recorded() -> str | None:
    try:
        prefix = durable.load(record_path(), LastInstall).prefix
    except (OSError, Cannot, msgspec.DecodeError):
        return None
    return prefix if prefix.startswith("/") and prefix.isprintable() else None


def write(prefix: str) -> None:
    """Remember the environment in that directory as the one installed last. Raises OSError."""
    path = record_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write(path, msgspec.json.encode(LastInstall(prefix)))


def forget(prefix: str) -> None:
    """It is gone: where it is the one installed last, none is. Raises OSError."""
    if _recorded() == prefix:
        record_path().unlink(missing_ok=True)
