"""Fetches files into the store: several at once, each once, the most urgent first."""

from __future__ import annotations

import functools
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
from .download import Download
from .errors import ComesAgain, FetchError
from .partial import Partial, private
from .progress import Fetching, fetching
from .store import Store
from .transfer import Transfer
from .wire import RETRIES, Stopped, Wire

AT_ONCE = 8

_REPORT = 0.2  # seconds between two reports of progress
_FOLLOW = 0.2  # seconds between two looks at what another process fetches
_END = 2.0  # seconds for threads that wait for the network to notice the end


class _Job:
    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.waits = True  # in the queue, and with nobody
        self.resumed = 0  # bytes that an earlier run had left


class Fetcher:
    """A context manager; leaving it ends what is under way, and what came is kept. Safe for threads.

    Transfers may be wanted at any time, by the server that the installer reads from too.
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
        self._wire = Wire(session, silence=silence, retries=retries)
        self._at_once = at_once
        self._on_progress = on_progress
        self._changed = threading.Condition()
        self._jobs: dict[str, _Job] = {}
        self._queue: list[tuple[int, int, int, str]] = []  # urgency, size, order of arrival, sha256
        self._order = 0
        self._threads: list[threading.Thread] = []
        self._workers = self._idle = 0
        self._resumed = 0
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
        return self._wire.fetched

    @property
    def resumed_bytes(self) -> int:
        """Bytes that earlier runs had left of cut files, and that were not fetched again."""
        return self._resumed

    def want(self, file: LockedFile, *, first: bool = False) -> Transfer:
        """The file's transfer, begun as soon as there is a place. first: before those that are not."""
        with self._changed:
            job = self._jobs.get(file.sha256)
            if job is not None:
                if first and job.waits:
                    self._enqueue(job, urgent=True)
                return job.transfer
        size = self._store.size(file.sha256)
        with self._changed:
            job = self._jobs.get(file.sha256)
            if job is None:
                job = self._jobs[file.sha256] = _Job(Transfer(file, self._store))
                if size is not None:
                    job.waits = False
                    self._finish(job.transfer, size)
                else:
                    self._enqueue(job, urgent=first)
            return job.transfer

    def want_all(self, files: Iterable[LockedFile]) -> None:
        """Fetch these, the largest first: what ends last is then small."""
        for file in sorted(files, key=lambda file: -(file.size or 0)):
            self.want(file)

    def wait(self) -> None:
        """Until everything that is wanted is in the store. Raises the first FetchError."""
        with self._changed:
            while not all(job.transfer.complete for job in self._jobs.values()):
                if self._error is not None:
                    raise self._error
                self._changed.wait()

    def progress(self) -> Fetching:
        """How far everything that is wanted is."""
        with self._changed:
            transfers = [job.transfer for job in self._jobs.values()]
        return fetching(transfers, self._wire.fetched)

    def close(self) -> None:
        """End what is under way, at once. What came is kept for the next run."""
        self._wire.end()
        with self._changed:
            self._changed.notify_all()
            threads = list(self._threads)
        until = time.monotonic() + _END
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        for job in list(self._jobs.values()):
            if not job.transfer.complete and job.transfer.error is None:
                job.transfer.failed(_stopped(job.transfer))

    def _enqueue(self, job: _Job, *, urgent: bool) -> None:
        """The lock is held. Entries that are out of date stay in the queue, and are skipped."""
        if self._wire.stop.is_set():
            job.transfer.failed(_stopped(job.transfer))
            return
        job.waits = True
        self._order += 1
        size = -(job.transfer.file.size or 0)
        heapq.heappush(self._queue, (not urgent, size, self._order, job.transfer.file.sha256))
        if len(self._queue) > self._idle and self._workers < self._at_once:
            self._workers += 1
            self._start(self._work)
        self._changed.notify_all()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        # A daemon: one that hangs in the network must not keep the interpreter from ending.
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._guarded(self._fetch, job)

    def _next(self) -> _Job | None:
        with self._changed:
            while not self._wire.stop.is_set():
                while self._queue:
                    job = self._jobs[heapq.heappop(self._queue)[3]]
                    if job.waits:
                        job.waits = False
                        return job
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
        return None

    def _guarded(self, action: Callable[[_Job], None], job: _Job) -> None:
        """Whatever happens to one file, somebody waits for it to come to an end."""
        try:
            action(job)
        except Stopped:
            self._fail(job, _stopped(job.transfer))
        except FetchError as error:
            self._fail(job, error)
        except OSError as error:
            missing = self._missing()
            self._fail(
                job, errors.of_disk(error, self._store.root, job.transfer.file.name, missing)
            )
        except Exception as error:  # noqa: BLE001 - a thread that died of it would be waited for
            words = f"{job.transfer.file.name} could not be fetched: internal error: {error!r}"
            self._fail(job, FetchError(words))

    def _fetch(self, job: _Job) -> None:
        """Fetch one file, or follow another process that does."""
        sha256 = job.transfer.file.sha256
        path = self._store.partial(sha256)
        self._store.make_room_for(path)
        self._store.make_room_for(self._store.lock_path(sha256))
        try:
            lock = locking.take(self._store.lock_path(sha256))
        except locking.NoLocks:
            self._download(job, private(path))
            return
        if lock is None:
            self._start(self._guarded, self._follow, job)
            return
        try:
            size = self._store.size(sha256)
            if size is not None:  # another process was quicker
                self._finish(job.transfer, size)
            else:
                self._download(job, path)
        finally:
            lock.release()

    def _download(self, job: _Job, path: Path) -> None:
        partial = Partial(path)
        try:
            job.transfer.begun(path, partial.there())
            partial.read_again()
            self._count_resumed(job, partial.size)
            download = Download(
                partial, job.transfer, self._wire, functools.partial(self._restarted, job)
            )
            transfer = download.run()
            partial.keep(self._store.path(transfer.file.sha256))
            self._finish(transfer, partial.size)
        finally:
            partial.close()

    def _follow(self, job: _Job) -> None:
        """Show how the file grows in another process's hands; take over when that one is gone."""
        sha256 = job.transfer.file.sha256
        path = self._store.partial(sha256)
        while not self._wire.stop.wait(_FOLLOW):
            there = self._store.size(sha256)
            if there is not None:
                self._finish(job.transfer, there)
                return
            lock = locking.take(self._store.lock_path(sha256))
            if lock is not None:
                lock.release()
                with self._changed:
                    self._enqueue(job, urgent=True)
                return
            with suppress(FileNotFoundError):
                size = path.stat().st_size
                if size < job.transfer.size:
                    self._restarted(job, job.transfer)
                job.transfer.begun(path, size)
        raise Stopped

    def _restarted(self, job: _Job, transfer: Transfer) -> Transfer:
        """The bytes so far are wrong. Who has read of them is cut off, and finds a new transfer."""
        self._count_resumed(job, 0)
        if transfer.restarted():
            return transfer
        job.transfer = Transfer(transfer.file, self._store)
        job.transfer.begun(self._store.partial(transfer.file.sha256), 0)
        transfer.failed(ComesAgain(f"{transfer.file.name} arrived damaged and is fetched again"))
        return job.transfer

    def _count_resumed(self, job: _Job, size: int) -> None:
        with self._changed:
            self._resumed += size - job.resumed
            job.resumed = size

    def _finish(self, transfer: Transfer, size: int) -> None:
        self._store.touch(transfer.file.sha256)
        transfer.finished(size)
        with self._changed:
            self._changed.notify_all()

    def _fail(self, job: _Job, error: FetchError) -> None:
        job.transfer.failed(error)
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def _missing(self) -> int:
        """Bytes that are still to come, as far as is known."""
        with self._changed:
            transfers = [job.transfer for job in self._jobs.values()]
        return sum(max(0, (t.total or 0) - t.size) for t in transfers if not t.complete)

    def _report(self) -> None:
        assert self._on_progress is not None
        while not self._wire.stop.wait(_REPORT):
            self._on_progress(self.progress())
        self._on_progress(self.progress())


def _stopped(transfer: Transfer) -> FetchError:
    return FetchError(f"fetching {transfer.file.name} was stopped; downloads are kept")
