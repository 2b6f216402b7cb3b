"""Fetches files into the store: several at once, each once, the most urgent first."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from urllib3.util import Retry

from ..lockfile import LockedFile
from ..network.session import SILENCE, Session
from . import errors, locking
from .download import RETRIES, Download, DownloadContext, Stopped
from .errors import FetchError
from .partial import Partial, private
from .progress import Fetching, fetching
from .store import Store
from .transfer import Transfer

AT_ONCE = 8

_REPORT = 0.2  # seconds between two reports of progress
_FOLLOW = 0.2  # seconds between two looks at what another process fetches
_END = 2.0  # seconds for threads that wait for the network to notice the end


class Fetcher:
    """A context manager; leaving it ends what is under way, and what came is kept. Safe for threads.

    on_progress: called from a thread of its own, about five times a second.
    """

    def __init__(
        self,
        store: Store,
        session: Session,
        at_once: int = AT_ONCE,
        on_progress: Callable[[Fetching], None] | None = None,
        *,
        silence: float = SILENCE,
        retries: Retry = RETRIES,
    ) -> None:
        """silence: seconds without a byte after which a connection counts as cut."""
        self._store = store
        self._context = DownloadContext(session, silence=silence, retries=retries)
        self._at_once = at_once
        self._on_progress = on_progress
        self._changed = threading.Condition()
        self._transfers: dict[str, Transfer] = {}
        self._waiting: set[str] = set()  # in the queue, and with no thread
        self._queue: list[tuple[int, int, int, str]] = []  # urgency, size, order of arrival, sha256
        self._order = 0
        self._threads: list[threading.Thread] = []
        self._workers = self._idle = 0
        self._error: FetchError | None = None

    def __enter__(self) -> Fetcher:
        if self._on_progress is not None:
            self._start(self._report)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def fetched_bytes(self) -> int:
        """Bytes of files that came over the network, those for nothing included."""
        return self._context.fetched

    @property
    def resumed_bytes(self) -> int:
        """Bytes that earlier runs had left of cut files, and that were not fetched again."""
        with self._changed:
            return sum(transfer.resumed for transfer in self._transfers.values())

    def want(self, file: LockedFile, *, first: bool = False) -> Transfer:
        """The file's transfer, begun as soon as there is a place. first: before those that are not."""
        sha256 = file.sha256
        with self._changed:
            known = self._transfers.get(sha256)
            if known is not None:
                if first and sha256 in self._waiting:
                    self._enqueue(known, urgent=True)
                return known
        size = self._store.size(sha256)
        with self._changed:
            transfer = self._transfers.setdefault(sha256, Transfer(file, self._store))
            if size is not None:
                self._finish(transfer, size)
            elif sha256 not in self._waiting:
                self._enqueue(transfer, urgent=first)
            return transfer

    def want_all(self, files: Iterable[LockedFile]) -> None:
        """Fetch these, the largest first: what ends last is then small."""
        for file in sorted(files, key=lambda file: -(file.size or 0)):
            self.want(file)

    def wait(self) -> None:
        """Until everything that is wanted is in the store. Raises the first FetchError."""
        with self._changed:
            while not all(transfer.complete for transfer in self._transfers.values()):
                if self._error is not None:
                    raise self._error
                self._changed.wait()

    def progress(self) -> Fetching:
        """How far everything that is wanted is."""
        with self._changed:
            return fetching(list(self._transfers.values()), self._context.fetched)

    def close(self) -> None:
        """End what is under way, at once. What came is kept for the next run."""
        self._context.end()
        with self._changed:
            self._changed.notify_all()
            threads = list(self._threads)
        until = time.monotonic() + _END
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        for transfer in list(self._transfers.values()):
            if not transfer.complete and transfer.error is None:
                transfer.error = _stopped(transfer)

    def _enqueue(self, transfer: Transfer, *, urgent: bool) -> None:
        """The lock is held. Entries that are out of date stay in the queue, and are skipped."""
        if self._context.stop.is_set():
            transfer.error = _stopped(transfer)
            return
        self._waiting.add(transfer.file.sha256)
        self._order += 1
        size = -(transfer.file.size or 0)
        heapq.heappush(self._queue, (not urgent, size, self._order, transfer.file.sha256))
        if len(self._queue) > self._idle and self._workers < self._at_once:
            self._workers += 1
            self._start(self._work)
        self._changed.notify_all()

    def _start(self, target: Callable[[], None]) -> None:
        # A daemon: one that hangs in the network must not keep the interpreter from ending.
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (transfer := self._next()) is not None:
            self._fetch(transfer)

    def _next(self) -> Transfer | None:
        with self._changed:
            while not self._context.stop.is_set():
                while self._queue:
                    sha256 = heapq.heappop(self._queue)[3]
                    if sha256 in self._waiting:
                        self._waiting.remove(sha256)
                        return self._transfers[sha256]
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
        return None

    def _fetch(self, transfer: Transfer) -> None:
        """Whatever happens to one file, somebody waits for it to come to an end."""
        name = transfer.file.name
        try:
            self._locked(transfer)
        except Stopped:
            self._fail(transfer, _stopped(transfer))
        except FetchError as error:
            self._fail(transfer, error)
        except OSError as error:
            self._fail(transfer, errors.of_disk(error, self._store.root, name, self._missing()))
        except Exception as error:  # noqa: BLE001 - a thread that died of it would be waited for
            words = f"{name} could not be fetched: internal error: {error!r}"
            self._fail(transfer, FetchError(words))

    def _locked(self, transfer: Transfer) -> None:
        """Fetch one file; where another process does, wait until it is there, or that one is gone."""
        sha256 = transfer.file.sha256
        path = self._store.partial(sha256)
        self._store.make_room_for(path)
        self._store.make_room_for(self._store.lock_path(sha256))
        try:
            while (lock := locking.take(self._store.lock_path(sha256), _FOLLOW)) is None:
                self._context.check()
                with suppress(FileNotFoundError):
                    transfer.size = path.stat().st_size
        except locking.NoLocks:
            self._download(transfer, private(path))
            return
        try:
            size = self._store.size(sha256)
            if size is not None:  # another process was quicker
                self._finish(transfer, size)
            else:
                self._download(transfer, path)
        finally:
            lock.release()

    def _download(self, transfer: Transfer, path: Path) -> None:
        partial = Partial(path)
        try:
            partial.read_again()
            transfer.size = transfer.resumed = partial.size
            Download(partial, transfer, self._context).run()
            partial.keep(self._store.path(transfer.file.sha256))
            self._store.verified(transfer.file.sha256)
            self._finish(transfer, partial.size)
        finally:
            partial.close()

    def _finish(self, transfer: Transfer, size: int) -> None:
        with self._changed:
            transfer.finished(size)
            self._changed.notify_all()

    def _fail(self, transfer: Transfer, error: FetchError) -> None:
        with self._changed:
            transfer.error = error
            self._error = self._error or error
            self._changed.notify_all()

    def _missing(self) -> int:
        """Bytes that are still to come, as far as is known."""
        with self._changed:
            transfers = list(self._transfers.values())
        return sum(max(0, (t.total or 0) - t.size) for t in transfers if not t.complete)

    def _report(self) -> None:
        assert self._on_progress is not None
        while not self._context.stop.wait(_REPORT):
            self._on_progress(self.progress())
        self._on_progress(self.progress())


def _stopped(transfer: Transfer) -> FetchError:
    return FetchError(f"fetching {transfer.file.name} was stopped; downloads are kept")
