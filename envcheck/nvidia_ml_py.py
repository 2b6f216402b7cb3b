"""Where nvidia-ml-py's one module lies, which goes to the collector by its path."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def file() -> Path | None:
    """nvidia-ml-py's module beside envcheck, or what stands in its place."""
    found = importlib.util.find_spec("pynvml")
    if found is None or not found.origin:
        return None
    path = Path(found.origin)
    # An old "pynvml" package of the same name hides the file, which is newer.
    beside = path.parent.with_suffix(".py")
    return beside if path.name == "__init__.py" and beside.is_file() else path
