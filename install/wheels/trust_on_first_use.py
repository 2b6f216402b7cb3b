"""The sha256 of a file whose index gives another hash or none: fetched once, and kept in the lock.

Nothing vouches for the first file but the connection to the index; from then on, the lock does.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from ...exit_codes import CouldNotLook
from ..lockfile import LockedFile

if TYPE_CHECKING:
    from ..network.session import Session

_PIECE = 1 << 20  # bytes


class OfferedFile(LockedFile, frozen=True, kw_only=True):
    """A file as its index offers it; ``sha256`` may be ""."""

    other_hash: str = ""  # "md5=7b76…"


def hashed(file: OfferedFile, session: Session) -> LockedFile:
    """The file with its sha256. Raises CouldNotLook where it has not the hash that the index gives."""
    known = {name: getattr(file, name) for name in LockedFile.__struct_fields__}
    if file.sha256:
        return LockedFile(**known)
    algorithm, _, expected = file.other_hash.partition("=")
    sums = [hashlib.sha256(), *([hashlib.new(algorithm)] if algorithm else [])]
    size = 0
    with session.get(file.url, headers={"Accept-Encoding": "identity"}, file=True) as response:
        for piece in response.iter_content(_PIECE):
            size += len(piece)
            for checksum in sums:
                checksum.update(piece)
    if file.size not in (None, size):
        raise CouldNotLook(
            f"{session.public(file.url)} has {size} bytes, and its index says {file.size}"
        )
    if algorithm and sums[1].hexdigest() != expected:
        raise CouldNotLook(
            f"{session.public(file.url)} has the {algorithm} {sums[1].hexdigest()}, "
            f"and its index says {expected}"
        )
    return msgspec.structs.replace(LockedFile(**known), sha256=sums[0].hexdigest(), size=size)
