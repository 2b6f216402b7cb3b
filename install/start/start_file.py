"""How an installed image is started, as ``start.json`` says it, checked: it becomes a command line."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ...exit_codes import UsageError
from .. import durable
from ..engine import Start

# An id or a name, or a file's path; never an option.
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*|/.*", re.DOTALL)


def read(path: Path) -> Start:
    """Raises UsageError, which names the file, for one that is not there or damaged."""
    try:
        start = durable.load(path, Start)
        if not start.program.startswith("/") or Path(start.program).name != start.engine:
            raise msgspec.ValidationError(f"its program is not {start.engine}'s")
        if not _IMAGE.fullmatch(start.image):
            raise msgspec.ValidationError("its image has no name that an image can have")
        return start
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
    raise UsageError(
        f"{path}: cannot be read: {why}",
        "envcheck list shows the version's state; envcheck install builds it again",
    )
