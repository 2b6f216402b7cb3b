"""How an installed image is started, as ``start.json`` says it, checked: it becomes a command line."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import msgspec

from ...exit_codes import UsageError
from .. import durable
from ..engine import Start
from ..registry import reference
from ..transaction import guard, roots

# An id or a name, or a file's path; never an option.
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*|/.*", re.DOTALL)
_PROGRAMS = {"apptainer": ("apptainer", "singularity")}


def read(path: Path) -> Start:
    """Raises OSError, msgspec.DecodeError."""
    start = durable.load(path, Start)
    names = _PROGRAMS.get(start.engine, (start.engine,))
    if not start.program.startswith("/") or Path(start.program).name not in names:
        raise msgspec.ValidationError(f"its program is not {start.engine}'s")
    if not _IMAGE.fullmatch(start.image):
        raise msgspec.ValidationError("its image has no name that an image can have")
    return start


def of_image(image: str, engine: str = "") -> Start | None:
    """How the environment in use that has this image is started; None where none has.

    An engine knows an image that envcheck installed by its digest and by envcheck's own tag alone, and not
    by the name that the user gave. Of more than one the environment that was installed last. engine: "": any.
    """
    prefix = roots.last()
    newest = None if prefix is None else Path(prefix).parent
    for root in sorted(roots.known(), key=lambda root: root.path != newest):
        version = root.current_id() if guard.is_safe(root) else None
        with suppress(OSError, msgspec.DecodeError, UsageError):
            start = read(root.version(version).start) if version else None
            if start is None or engine not in ("", start.engine):
                continue
            if reference.parse(start.reference) == reference.parse(image):
                return start
    return None
