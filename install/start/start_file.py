"""How an installed image is started, as ``start.json`` says it, checked: it becomes a command line."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ...exit_codes import UsageError
from .. import durable
from ..engine import Start
from ..registry import reference
from ..transaction import guard, last_install, roots
from ..transaction.layout import Root

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
    try:
        wanted = reference.parse(image)
    except UsageError:
        return None
    for root in filter(guard.is_safe, _last_first()):
        start = _in_use(root)
        if start is not None and engine in ("", start.engine) and _is(start, wanted):
            return start
    return None


def _last_first() -> list[Root]:
    prefix = last_install.read()
    newest = None if prefix is None else Path(prefix).parent
    return sorted(roots.known(), key=lambda root: root.path != newest)


def _in_use(root: Root) -> Start | None:
    version = root.current_id()
    if version is None or not root.version(version).is_directory:
        return None
    try:
        return read(root.version(version).start)
    except (OSError, msgspec.DecodeError):
        return None


def _is(start: Start, wanted: reference.Reference) -> bool:
    try:
        return reference.parse(start.reference) == wanted
    except UsageError:
        return False
