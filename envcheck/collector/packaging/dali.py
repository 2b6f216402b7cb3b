"""The libraries of DALI's TensorFlow plugin, and when they were made."""

import os

from .. import files
from ..facts import unavailable
from . import distributions

_FOLDERS = (("nvidia", "dali_tf_plugin"), ("nvidia", "dali", "plugin"))
_LIMIT = 50  # libraries


def libraries(found):
    """The plugin's libraries, where DALI is among these Distributions; empty where its plugin is not."""
    places = {one.location for one in found if one.normalized.startswith("nvidia-dali")}
    if not places:
        return unavailable("absent", "no DALI")
    folders = [os.path.join(place, *parts) for place in sorted(places) for parts in _FOLDERS]
    return [library for folder in folders for library in _in(folder)]


def _in(folder):
    return [
        {"name": name, "made_at": distributions.since(os.path.join(folder, name))}
        for name in files.names(folder)
        if name.startswith("libdali_tf") and name.endswith(".so")
    ][:_LIMIT]
