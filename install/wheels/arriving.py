"""A lock's files in portions, as they arrive: an installer unpacks one while the next is fetched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..lockfile import LockedFile

if TYPE_CHECKING:
    from ..index.views import View
    from ..store.transfer import Transfer

# A portion starts the installer once, which takes some hundredths of a second.
ENOUGH = 64 * 1024 * 1024  # bytes
PATIENCE = 0.5  # seconds that less than enough waits for more
_LOOK = 0.02  # seconds between two looks


def portions(
    wanted: Iterable[LockedFile], files: View, beat: Callable[[], None] | None = None
) -> Iterator[dict[str, Path]]:
    """Where the files are, by sha256: each once, until all have come.

    beat: called between looks; what it raises ends the wait. Raises the FetchError of a file that does not
    come, and KeyError for one that ``files`` does not know.
    """
    waiting = {file.sha256: _transfer(file.sha256, files) for file in wanted}
    since = time.monotonic()
    while waiting:
        here = [sha256 for sha256 in waiting if _arrived(sha256, waiting, files)]
        ready = sum(waiting[sha256].total or 0 for sha256 in here)
        late = time.monotonic() - since >= PATIENCE
        if len(here) == len(waiting) or (here and (late or ready >= ENOUGH)):
            yield {sha256: waiting.pop(sha256).named() for sha256 in here}
            since = time.monotonic()
            continue
        if beat is not None:
            beat()
        time.sleep(_LOOK)


def _arrived(sha256: str, waiting: dict[str, Transfer], files: View) -> bool:
    transfer = waiting[sha256]
    if transfer.error is not None:
        # Wrong bytes are fetched once more, in a transfer of their own.
        waiting[sha256] = _transfer(sha256, files)
        if waiting[sha256] is transfer:
            raise transfer.error
    return waiting[sha256].complete


def _transfer(sha256: str, files: View) -> Transfer:
    transfer = files.file(sha256)
    if transfer is None:
        raise KeyError(sha256)
    return transfer
