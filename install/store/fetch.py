"""Fetches files into the store: several at once, each once, the most urgent first."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from queue import PriorityQueue

from urllib3.util import Retry

from ..lockfile import LockedFile
from ..network.session import SILENCE, Session
from . import errors
from .download import RETRIES, Download, DownloadContext, Stopped, Transfer
from .errors import FetchError
from .partial import Partial, private
from .progress import Fetching
from .store import NoLocks, Store, take

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
        # Urgency, size, order of arrival. One that becomes urgent is there twice.
        self._queue: PriorityQueue[tuple[int, int, int, Transfer | None]] = PriorityQueue()
        self._order = itertools.count()
        self._urgent: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._error: FetchError | None = None

    def __enter__(self) -> Fetcher:
        if self._on_progress is not None:
            self._start(self._report)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def fetched_bytes(self) -> int:
        """Bytes of files that came over the network, those for nothing included."""
        return self._context.fetched

    @property
    def resumed_bytes(self) -> int:
        """Bytes that earlier runs had left of cut files, and that were not fetched again."""
        return sum(transfer.resumed for transfer in list(self._transfers.values()))

    def want(self, file: LockedFile, *, first: bool = False) -> Transfer:
        """The file's transfer, begun as soon as there is a place. first: before those that are not."""
        transfer = self._transfers.get(file.sha256)
        is_new = transfer is None
        if transfer is None:
            size = self._store.size(file.sha256)
            with self._changed:
                transfer = self._transfers.setdefault(file.sha256, Transfer(file, self._store))
            if size is not None:
                self._finish(transfer, size)
        if not transfer.begun and (is_new or (first and file.sha256 not in self._urgent)):
            self._enqueue(transfer, first)
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
        transfers = list(self._transfers.values())
        known = [transfer.total for transfer in transfers if transfer.total is not None]
        return Fetching(
            files=len(transfers),
            files_done=sum(transfer.complete for transfer in transfers),
            total=sum(known) if len(known) == len(transfers) else None,
            done=sum(transfer.size for transfer in transfers),
            fetched=self._context.fetched,
        )

    def close(self) -> None:
        """End what is under way, at once. What came is kept for the next run."""
        self._context.end()
        for _ in self._threads:
            self._queue.put((-1, 0, next(self._order), None))
        until = time.monotonic() + _END
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        for transfer in list(self._transfers.values()):
            if not transfer.complete and transfer.error is None:
                transfer.error = _stopped(transfer)

    def _enqueue(self, transfer: Transfer, first: bool) -> None:
        if self._context.stop.is_set():
            transfer.error = _stopped(transfer)
            return
        with self._changed:
            if first:
                self._urgent.add(transfer.file.sha256)
            size = transfer.file.size or 0
            self._queue.put((not first, -size, next(self._order), transfer))
            if len(self._threads) < self._at_once + (self._on_progress is not None):
                self._start(self._work)

    def _start(self, target: Callable[[], None]) -> None:
        # A daemon: one that hangs in the network must not keep the interpreter from ending.
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (transfer := self._queue.get()[-1]) is not None:
            with self._changed:
                begun, transfer.begun = transfer.begun, True
            if not begun:
                self._fetch(transfer)

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
            while (lock := take(self._store.lock_path(sha256), _FOLLOW)) is None:
                self._context.check()
                with suppress(FileNotFoundError):
                    transfer.size = path.stat().st_size
        except NoLocks:
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
            transfer.size = transfer.total = size
            transfer.begun = transfer.complete = True
            self._changed.notify_all()

    def _fail(self, transfer: Transfer, error: FetchError) -> None:
        with self._changed:
            transfer.error = error
            self._error = self._error or error
            self._changed.notify_all()

    def _missing(self) -> int:
        """Bytes that are still to come, as far as is known."""
        transfers = list(self._transfers.values())
        return sum(max(0, (t.total or 0) - t.size) for t in transfers if not t.complete)

    def _report(self) -> None:
        assert self._on_progress is not None
        while not self._context.stop.wait(_REPORT):
            self._on_progress(self.progress())
        self._on_progress(self.progress())


def _stopped(transfer: Transfer) -> FetchError:
    return FetchError(f"fetching {transfer.file.name} was stopped; downloads are kept")
