"""Downloads one file: goes on where it was cut, verifies what came, and begins again once if it is wrong."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import requests
from urllib3.util import Retry

from ...exit_codes import EnvcheckError
from ..lockfile import LockedFile
from ..network import addresses
from ..network.errors import HttpError
from ..network.retries import Attempts, retry_policy
from ..network.session import SILENCE, Session
from ..network.transport import LARGEST, content_length, pieces
from .errors import FetchError
from .partial import Partial
from .store import Store

RETRIES = retry_policy(attempts=8, slow=8)  # about a minute in all: a router may restart

PROGRESS = 16 * 1024  # bytes since the cut before: then the retries count from one again

# Which part of a file an answer holds (RFC 9110, section 14): the first byte, and the file's size.
_CONTENT_RANGE = re.compile(r"\s*bytes\s+(?:([0-9]{1,18})-[0-9]{1,18}|\*)/([0-9]{1,18}|\*)\s*")


class Stopped(Exception):
    """The fetching was ended from outside."""


class Transfer:
    """A file on its way into the store. The Fetcher's threads write it, and everybody may read it.

    Sizes in bytes. total: None while it is not known. size: what is there, verified or not. resumed: of
    these, what an earlier run had left. complete: it is in the store, verified. error: why it will not be.
    """

    def __init__(self, file: LockedFile, store: Store) -> None:
        self.file = file
        self.total = file.size
        self.size = 0
        self.resumed = 0
        self.begun = False
        self.complete = False
        self.error: FetchError | None = None
        self._store = store

    def named(self) -> Path:
        """The complete file under its own name. Raises FetchError."""
        return self._store.named(self.file.sha256, self.file.name)


class DownloadContext:
    """What all downloads share: the session, the count of bytes, and the way to end them at once.

    fetched: bytes of bodies that came over the network.
    """

    def __init__(
        self, session: Session, *, silence: float = SILENCE, retries: Retry = RETRIES
    ) -> None:
        """silence: seconds without a byte that count as a cut."""
        self.session = session
        self.silence = silence
        self.retries = retries
        self.stop = threading.Event()
        self.fetched = 0
        self._lock = threading.Lock()
        self._open: set[requests.Response] = set()

    def end(self) -> None:
        """Wake whoever waits for the network."""
        self.stop.set()
        with self._lock:
            for answer in self._open:
                with suppress(AttributeError, OSError, RuntimeError, ValueError):
                    answer.raw.shutdown()

    @contextmanager
    def reading(self, answer: requests.Response) -> Iterator[None]:
        """``end`` cuts it off meanwhile."""
        with self._lock:
            self._open.add(answer)
        try:
            with answer:
                yield
        finally:
            with self._lock:
                self._open.discard(answer)

    def count(self, size: int) -> None:
        """So many bytes came. Raises Stopped."""
        with self._lock:
            self.fetched += size
        self.check()

    def check(self) -> None:
        """Raises Stopped."""
        if self.stop.is_set():
            raise Stopped


class Download:
    """One file's way over the network into its partial."""

    def __init__(self, partial: Partial, transfer: Transfer, context: DownloadContext) -> None:
        self._file = transfer.file
        self._partial = partial
        self._transfer = transfer
        self._context = context
        self._is_second = False
        self._host = addresses.host(self._file.url)

    def run(self) -> None:
        """Fetch what is missing, and verify all of it. Raises FetchError, OSError for the disk, Stopped."""
        while True:
            self._fetch()
            found = self._partial.hexdigest()
            if found == self._file.sha256:
                return
            # An earlier run's bytes, or a cache on the way, may be to blame: once more, all of it.
            wanted = self._file.sha256
            self._begin_again(self._wrong(f"its sha256 is {found}, and should be {wanted}"))

    def _begin_again(self, error: EnvcheckError) -> None:
        """Drop what is there. Raises the error where that was done before."""
        if self._is_second:
            self._partial.discard()
            raise error
        self._is_second = True
        self._partial.restart()
        self._transfer.size = self._transfer.resumed = 0

    def _fetch(self) -> None:
        """Until the last byte is there, through all cuts."""
        attempts = Attempts(self._context.retries, self._context.stop)
        is_all = False
        while not is_all and self._partial.size != self._transfer.total:
            before = self._partial.size
            try:
                is_all = self._request()
            except HttpError as error:
                self._context.check()
                try:
                    attempts.failed(error, progress=self._partial.size - before >= PROGRESS)
                except HttpError:
                    self._context.check()
                    raise self._given_up(error) from None

    def _request(self) -> bool:
        """Ask for what is missing, and take what comes; whether the server says that this is all."""
        have = self._partial.size
        headers = {"Accept-Encoding": "identity"}
        if have:
            # Without If-Range: mirrors of one file differ in their ETags, and then all of it would come
            # again at every cut. Whether it still is the same file, the hash says in the end.
            headers["Range"] = f"bytes={have}-"
        context = self._context
        try:
            answer = context.session.get(
                self._file.url, headers=headers, timeout=context.silence, attempts=1, file=True
            )
        except HttpError as error:
            if error.status != 416 or not have:
                raise
            if _range(error.headers)[1] == have:
                return True
            self._begin_again(self._given_up(error))
            return False
        with context.reading(answer):
            skip, total = place(answer, have)
            self._check(total)
            for data in pieces(answer):
                context.count(len(data))
                self._partial.append(data[skip:])
                skip = max(0, skip - len(data))
                self._transfer.size = self._partial.size
                if self._partial.size > (self._file.size or LARGEST):
                    raise self._wrong(f"it has more than {self._file.size or LARGEST} bytes")
        if total is not None and self._partial.size < total:
            raise HttpError(f"{self._host} cut the connection", again=True)
        return True

    def _check(self, total: int | None) -> None:
        """The size that the server names against the one that the lock names. Raises FetchError."""
        if total is None:
            return
        if self._file.size not in (None, total):
            raise self._wrong(f"it has {total} bytes, and should have {self._file.size}")
        self._transfer.total = total

    def _wrong(self, why: str) -> FetchError:
        return FetchError(
            f"{self._file.name} from {self._host} is not the file that was asked for: {why}",
            "its server changed the file, or somebody in between did",
        )

    def _given_up(self, error: HttpError) -> FetchError:
        have, total = self._partial.size >> 20, self._transfer.total
        far = f" after {have} MiB" + (f" of {total >> 20}" if total else "") if have else ""
        kept = "downloads are kept, and the next run continues from there" if have else ""
        return FetchError(
            f"{self._file.name} could not be fetched{far}: {error}", error.hint or kept
        )


def place(response: requests.Response, have: int) -> tuple[int, int | None]:
    """How many bytes of the body to skip when ``have`` bytes are there already, and the file's size.

    A server that ignores ranges sends all of it. Raises HttpError for a part that leaves a gap.
    """
    if response.status_code == 206:
        start, total = _range(response.headers)
        if start is not None and start <= have:
            return have - start, total
    elif response.status_code == 200:
        return have, content_length(response.headers)
    host = addresses.host(response.url)
    raise HttpError(f"{host} sends another part of the file than it was asked for", again=True)


def _range(headers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """First byte and size of the whole file by Content-Range; None: it does not say."""
    found = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
    numbers = found.groups() if found else (None, None)
    return (
        int(numbers[0]) if numbers[0] else None,
        int(numbers[1]) if numbers[1] not in (None, "*") else None,
    )
