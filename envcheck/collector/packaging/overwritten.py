"""Files that several distributions recorded with different content: whose content lies on the disk."""

import base64
import hashlib
import os
import re

from .. import files
from . import distributions

_CODE = re.compile(r"(?:\.py|\.so(?:\.\d\w*)*)\Z")
# What many distributions bring by mistake, or share as a namespace.
_COMMON = re.compile(r"(?:\A|/)(?:__init__\.py\Z|(?:tests?|docs?|examples?|scripts|bin)/)|\A\.\.")
_SAMPLES = 3  # files of a pair that are read
_LIMIT = 1 << 29  # bytes of one of them
_CHUNK = 1 << 20


def find(every):
    """{id(Distribution): [{"by", "files", "example"}]} of those whose files are now another one's."""
    first, shared = {}, {}
    for one in every:
        for path, content in _code(one):
            place = os.path.join(one.location, path)
            other, theirs = first.setdefault(place, (one, content))
            if theirs != content and other.normalized != one.normalized:
                pair = shared.setdefault((id(other), id(one)), (other, one, []))
                pair[2].append((place, path, theirs, content))
    lost = {}
    for other, one, places in shared.values():
        for place, path, theirs, content in sorted(places, key=_size)[:_SAMPLES]:
            there = _hash(place)
            if there in (theirs, content):
                loser, winner = (one, other) if there == theirs else (other, one)
                fact = {"by": winner.name, "files": len(places), "example": path}
                lost.setdefault(id(loser), []).append(fact)
                break
    return lost


def _code(distribution):
    try:
        for path, content in distributions.recorded(distribution, about="sha256="):
            if content and _CODE.search(path) and not _COMMON.search(path):
                yield path, content
    except (OSError, ValueError):
        return


def _size(shared):
    try:
        return os.stat(shared[0]).st_size
    except (OSError, ValueError):
        return _LIMIT


def _hash(place):
    """A file's content as RECORD writes it; None where it cannot be read."""
    made, read = hashlib.sha256(), 0
    try:
        with files.open_regular(place) as file:
            for chunk in iter(lambda: file.read(_CHUNK), b""):
                made.update(chunk)
                read += len(chunk)
                if read > _LIMIT:
                    return None
    except (OSError, ValueError):
        return None
    return "sha256=" + base64.urlsafe_b64encode(made.digest()).decode("ascii").rstrip("=")
