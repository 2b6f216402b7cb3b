"""The libcublas that this process has mapped, and its version, as it tells it itself."""

import os

from ..cuda import dl, libraries
from ..facts import from_error, unavailable


def facts():
    """{"library": path, "library_version": "12.9.1"}, fields of a LevelRun, each a value or unavailable.

    The first of them, where there are several. A libcublas inside another library has no file to find.
    """
    try:
        for region in dl.mappings():
            library = libraries.known(os.path.basename(region.path))
            if library is not None and library.name == "libcublas":
                return {"library": region.path, "library_version": _version(library, region.path)}
    except Exception as error:
        return dict.fromkeys(("library", "library_version"), from_error(error))
    missing = unavailable("absent", "no libcublas is mapped as a file of its own")
    return dict.fromkeys(("library", "library_version"), missing)


def _version(library, path):
    try:
        handle = dl.loaded(path)
        return libraries.ask(handle, library, dl.where(handle)[1])["version"]
    except Exception as error:
        return from_error(error)
