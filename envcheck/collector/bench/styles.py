"""The styles, by name: each a package beside this file."""

import importlib

NAMES = ("session", "keras", "torch", "jax")


def load(name):
    """The style's package. Raises ValueError where there is none of that name."""
    if name not in NAMES:
        raise ValueError("%r is no style" % (name,))
    return importlib.import_module(__package__ + "." + name)
