"""Downloads one file: goes on where it was cut, verifies what came, and begins again once if it is wrong."""

from __future__ import annotations

import threading
import time

from urllib3.util import Retry

from ...exit_codes import EnvcheckError
from ..network import addresses
from ..network.errors import HttpError
from ..network.retries import Attempts, retry_policy
from ..network.session import SILENCE, Session
from ..network.transport import LARGEST, SLOWEST, Answer, Watchdog
from . import content_range, errors
from .errors import FetchError
from .partial import Partial
from .transfer import Transfer

RETRIES = retry_policy(attempts=8, slow=8)  # about a minute in all: a router may restart

# A cut loses what is being read into the buffer. It starts small and doubles on a fast connection, so that
# one which is cut often makes progress too, and a fast one costs few calls for each MiB.
LEAST = 64 * 1024
MOST = 256 * 1024  # more was measured not to be faster, and costs memory and what a kill loses
_QUICK = 0.25  # seconds for a buffer

PROGRESS = 16 * 1024  # bytes since the cut before: then the retries count from one again


class Stopped(Exception):
    """The fetching was ended from outside."""


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
        self._open: set[Watchdog] = set()

    def count(self, size: int) -> None:
        with self._lock:
            self.fetched += size

    def end(self) -> None:
        """Wake whoever waits for the network."""
        self.stop.set()
        with self._lock:
            for watchdog in self._open:
                watchdog.shut()

    def watch(self, watchdog: Watchdog) -> None:
        with self._lock:
            self._open.add(watchdog)

    def forget(self, watchdog: Watchdog) -> None:
        with self._lock:
            self._open.discard(watchdog)

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
            wrong = errors.wrong_bytes(self._file.name, self._host, self._file.sha256, found)
            # An earlier run's bytes, or a cache on the way, may be to blame: once more, all of it.
            self._begin_again(wrong)

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
        try:
            answer = self._context.session.get(
                self._file.url,
                headers=headers,
                timeout=self._context.silence,
                attempts=1,
                file=True,
            )
        except HttpError as error:
            if error.status != 416 or not have:
                raise
            if content_range.size_of_all(error.headers) == have:
                return True
            self._begin_again(self._given_up(error))
            return False
        with answer:
            skip, total = content_range.place(answer, have)
            self._check(total)
            return self._read(answer, skip, total)

    def _check(self, total: int | None) -> None:
        """The size that the server names against the one that the lock names. Raises FetchError."""
        if total is None:
            return
        if self._file.size is not None and total != self._file.size:
            raise FetchError(
                f"{self._file.name} from {self._host} is not the file that was asked for: it has"
                f" {total} bytes, and should have {self._file.size}",
                "its server changed the file, or somebody in between did",
            )
        self._transfer.total = total

    def _read(self, answer: Answer, skip: int, total: int | None) -> bool:
        """Append the body, less what is there already. Raises HttpError where it breaks off."""
        partial, context = self._partial, self._context
        size = LEAST
        with answer.watchdog(SLOWEST) as watchdog:
            context.watch(watchdog)
            try:
                while True:
                    context.check()
                    started = time.monotonic()
                    with answer.explained(watchdog):
                        data = answer.raw.read(size, decode_content=False)
                    if not data:
                        break
                    context.count(len(data))
                    partial.append(data[skip:])
                    skip = max(0, skip - len(data))
                    self._transfer.size = partial.size
                    if self._is_too_large():
                        break
                    quick = time.monotonic() - started < _QUICK
                    size = min(size * 2, MOST) if quick else max(size // 2, LEAST)
                    watchdog.renew()
            finally:
                context.forget(watchdog)
        if total is not None and partial.size < total:
            raise HttpError(f"{self._host} cut the connection", again=True)
        return True

    def _is_too_large(self) -> bool:
        """More than there can be: the hash will say so. Raises FetchError where no size is known."""
        if self._file.size is not None:
            return self._partial.size > self._file.size
        if self._partial.size > LARGEST:
            raise FetchError(
                f"{self._file.name} from {self._host} has more than {LARGEST >> 30} GiB,"
                " and nobody said how large it is"
            )
        return False

    def _given_up(self, error: HttpError) -> FetchError:
        have, total = self._partial.size >> 20, self._transfer.total
        far = f" after {have} MiB" + (f" of {total >> 20}" if total else "") if have else ""
        kept = "downloads are kept, and the next run continues from there" if have else ""
        return FetchError(
            f"{self._file.name} could not be fetched{far}: {error}", error.hint or kept
        )
