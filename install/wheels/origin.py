"""Whether a resolution takes each package from the index it belongs to. Asked before any file is fetched.

The resolver gets the index that a claimed name comes from; this does not trust that it obeyed. What pip calls
dependency confusion is refused here: somebody else's file under a name that one index claims.
"""

from __future__ import annotations

from collections.abc import Iterable

from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data import packages
from ...exit_codes import Cannot
from ..catalogue.model import PUBLIC, Stack
from ..lockfile import LockedFile
from ..network.addresses import shown
from . import sdists
from .indexes import Indexes
from .pins import Pin

_NAMED = 3  # refusals that an error names


def check(pins: Iterable[Pin], indexes: Indexes) -> None:
    """Raises Cannot for a package from another index than its own, and for a version that is no software."""
    refused = [why for pin in pins if (why := _refusal(pin, indexes))]
    if refused:
        more = f" (and {len(refused) - _NAMED} more)" if len(refused) > _NAMED else ""
        raise Cannot(
            f"{'; '.join(refused[:_NAMED])}{more}",
            "nothing of it was fetched; --index NAME=URL names another address of an index",
        )


def check_file(pin: Pin, file: LockedFile, stack: Stack) -> None:
    """Raises Cannot for the file of another package, and for a source distribution that the stack does not
    name: building it runs its code."""
    if file.kind == "wheel":
        own = canonicalize_name(file.name.partition("-")[0]) == pin.name
    else:
        stem = file.name.removesuffix(".tar.gz").removesuffix(".zip")
        own = canonicalize_name(stem).startswith(f"{pin.name}-")
    if not own:
        raise Cannot(f"the index offers {file.name} as a file of {pin.name} {pin.version}")
    if file.kind == "sdist":
        sdists.allowed(pin.name, pin.version, file, stack)


def _refusal(pin: Pin, indexes: Indexes) -> str:
    owner = indexes.stack.index_of(pin.name)
    where = indexes.public_url(owner)
    if pin.index.rstrip("/") != where.rstrip("/"):
        known = f"the {owner} index ({shown(where)})"
        if owner == PUBLIC:
            return (
                f"{pin.name} {pin.version} comes from {shown(pin.index)}, which does not claim that name:"
                f" it belongs to {known}"
            )
        return (
            f"{known} has no {pin.name} that fits, and {shown(pin.index)} offers {pin.version} under that"
            f" name; {pin.name} is taken from no other index"
        )
    version = Version(pin.version)
    known_as = packages.placeholder(pin.name, pin.version)
    # Under every name that NVIDIA held, the table's or not, this was the placeholder's number.
    numbered = version.base_version == "0.0.1" and version.is_devrelease
    if known_as is None and not (numbered and pin.name.startswith("nvidia-")):
        return ""
    kind = "not NVIDIA's software" if version.major == 99 and owner == PUBLIC else "a placeholder"
    why = known_as.why if known_as else "it only holds the name"
    return f"{pin.name} {pin.version} is {kind}: {why}"
