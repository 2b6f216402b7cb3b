"""The styles and their models, by name: each style a package beside this file, with a file a model."""

import importlib

NAMES = ("session", "keras", "torch", "jax")
_FILES = {  # of each style
    "resnet50": "resnet50",
    "mnist": "mnist",
    "bert-base": "bert",
    "bert-large": "bert",
    "unet-2d": "unet",
    "unet-3d": "unet",
    "mlp": "mlp",
}
MODELS = tuple(sorted(_FILES))


def load(name):
    """The style's package. Raises ValueError where there is none of that name."""
    if name not in NAMES:
        raise ValueError("%r is no style" % (name,))
    return importlib.import_module(__package__ + "." + name)


def model(style, name):
    """The module of a style that writes a model; the style's own docstring says what it holds."""
    return importlib.import_module("%s.%s.%s" % (__package__, style, _FILES[name]))
