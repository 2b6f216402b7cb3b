"""A lock's files in portions, as they arrive: an installer unpacks one while the next is fetched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..lockfile import LockedFile

if TYPE_CHECKING:
    from ..store.fetch import Fetcher

# A portion starts the installer once, which takes some hundredths of a second.
ENOUGH = 64 * 1024 * 1024  # bytes
PATIENCE = 0.5  # seconds that less than enough waits for more
_LOOK = 0.02  # seconds between two looks


def portions(
    wanted: Iterable[LockedFile], fetcher: Fetcher, beat: Callable[[], None] | None = None
) -> Iterator[dict[str, Path]]:
    """Where the files are, by sha256: each once, until all have come.

    beat: called between looks; what it raises ends the wait. Raises the FetchError of a file that does not
    come.
    """
    waiting = {file.sha256: file for file in wanted}
    since = time.monotonic()
    while waiting:
        transfers = {sha256: fetcher.want(file, first=True) for sha256, file in waiting.items()}
        for transfer in transfers.values():
            if transfer.error is not None:
                raise transfer.error
        here = [sha256 for sha256, transfer in transfers.items() if transfer.complete]
        ready = sum(transfers[sha256].total or 0 for sha256 in here)
        late = time.monotonic() - since >= PATIENCE
        if len(here) == len(waiting) or (here and (late or ready >= ENOUGH)):
            for sha256 in here:
                del waiting[sha256]
            yield {sha256: transfers[sha256].named() for sha256 in here}
            since = time.monotonic()
            continue
        if beat is not None:
            beat()
        time.sleep(_LOOK)


def shelf(
    folder: Path,
    wanted: Iterable[LockedFile],
    fetcher: Fetcher,
    beat: Callable[[], None] | None = None,
) -> Path:
    """``folder`` with a link to each of the files under its own name: for --find-links. Waits for all."""
    folder.mkdir(parents=True, exist_ok=True)
    for paths in portions(wanted, fetcher, beat):
        for path in paths.values():
            link = folder / path.name
            if not link.is_symlink():
                link.symlink_to(path)
    return folder
