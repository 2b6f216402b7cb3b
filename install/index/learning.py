"""The sha256 of a file whose index gives none: the file is fetched once, and the lock pins what came.

It is trust at first sight, and the lock says so (``learnt``): nothing vouches for the first file but the
connection to the index. What came is remembered by the file's address, so that the next resolution asks for
the same bytes and a file that has been replaced is found out.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from .simple import IndexBroken, ProjectFile

if TYPE_CHECKING:
    from ..network.session import Session
    from ..store.store import Store

PIECE = 1024 * 1024


def learn(session: Session, store: Store, file: ProjectFile) -> ProjectFile:
    """The file with its sha256 and size, and the bytes in the store.

    Raises IndexBroken where it has not the md5 or the like that the index gives.
    """
    memory = hashlib.sha256(f"learnt {session.public(file.url)}".encode()).hexdigest()
    known = store.metadata(memory)
    if known is not None:
        return msgspec.structs.replace(file, sha256=known.decode(), learnt=True)
    partial = store.partial(memory)
    partial.parent.mkdir(parents=True, exist_ok=True)
    # Under a partial file's name, so that what a kill leaves is pruned like one.
    with tempfile.NamedTemporaryFile(dir=partial.parent, prefix=f"{memory}.") as out:
        sha256 = _fetch(session, file, out)
        out.flush()
        size = out.tell()
        store.adopt(Path(out.name), sha256)
    store.put_metadata(memory, sha256.encode())
    return msgspec.structs.replace(file, sha256=sha256, size=size, learnt=True)


def _fetch(session: Session, file: ProjectFile, out: IO[bytes]) -> str:
    algorithm, _, expected = file.other_hash.partition("=")
    sums = [hashlib.sha256(), *([hashlib.new(algorithm)] if algorithm else [])]
    headers = {"Accept-Encoding": "identity"}
    with session.get(file.url, headers=headers, file=True) as response:
        for piece in response.iter_content(PIECE):
            out.write(piece)
            for checksum in sums:
                checksum.update(piece)
        length = response.headers.get("Content-Length", "")
    if length.isdigit() and int(length) != out.tell():
        raise IndexBroken(
            f"{session.public(file.url)} was cut off at {out.tell()} of {length} bytes"
        )
    if algorithm and sums[1].hexdigest() != expected:
        raise IndexBroken(
            f"{session.public(file.url)} has the {algorithm} {sums[1].hexdigest()}, "
            f"and the index says {expected}"
        )
    return sums[0].hexdigest()
