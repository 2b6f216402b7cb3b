"""Whether a package's code is written for Keras 2, which its metadata does not tell."""

import os
import re

from .. import files
from . import distributions

# What Keras 3 does not have, and those who need Keras 2 therefore name.
_WORDS = re.compile(
    r"\btf_keras\b|\bTF_USE_LEGACY_KERAS\b|\btensorflow\.python\.keras\b|\bkeras\.engine\b"
    r"|\bkeras\.utils\.generic_utils\b|\bkeras\.layers\.experimental\.preprocessing\b"
)
_BY_NAME = re.compile(r"^[ \t]{0,40}(?:import|from) {1,4}tf_keras\b", re.M)
_HOME = re.compile(
    r"tensorflow.*|tf-.*|keras.*|tensorboard.*|intel-tensorflow.*|nvidia-tensorflow\Z"
)
_FILES, _BYTES = 500, 1 << 18  # that are read, and of each of them


def needs(distribution):
    """The words that show it, "" for none. Only what requires TensorFlow or Keras is read.

    Where an extra alone does, it has halves for other frameworks: what imports Keras 2 by its name counts.
    """
    every = any(map(_is_keras, distributions.required_names(distribution)))
    extra = any(map(_is_keras, distributions.required_names(distribution, extras=True)))
    if _HOME.match(distribution.normalized) or not (every or extra):
        return ""
    words = _WORDS if every else _BY_NAME
    try:
        paths = [path for path, _hash in distributions.recorded(distribution, about=".py")]
    except (OSError, ValueError):
        return ""
    for path in [path for path in paths if path.endswith(".py") and "test" not in path][:_FILES]:
        try:
            place = os.path.join(distribution.location, path)
            found = words.search(files.read(place, _BYTES).decode("utf-8", "replace"))
        except (OSError, ValueError):
            continue
        if found:
            return found.group(0).split()[-1]
    return ""


def _is_keras(name):
    return name == "keras" or name in distributions.TENSORFLOWS
