"""--label NAME=VALUE: labels of every metric."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..exit_codes import UsageError

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# Labels that metrics already have.
_TAKEN = {
    *("version", "simulated", "status", "code", "area", "outcome", "level", "cuda", "framework"),
    *("gpu", "model", "reason", "xid", "mig_instance", "library", "mode", "setting", "verdict"),
    *("machine", "state", "product", "device", "key", "kind", "place"),
}


def read(words: Iterable[str]) -> dict[str, str]:
    """Raises UsageError for a word that is no label."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (equals and value and _NAME.fullmatch(name)) or name.startswith("__"):
            raise UsageError(
                f"--label {word}: not NAME=VALUE; a name has letters, digits and _: host=gpu07"
            )
        if name in _TAKEN:
            raise UsageError(f"--label {word}: envcheck's metrics already have a label {name}")
        if name in found:
            raise UsageError(f"--label {word}: {name} is given twice")
        found[name] = value
    return found
