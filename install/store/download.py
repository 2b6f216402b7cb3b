"""Downloads one file: goes on where it was cut, verifies what came, and begins again once if it is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable

import requests

from ...exit_codes import EnvcheckError
from ..network import addresses
from ..network import errors as http_errors
from ..network.errors import HttpError
from ..network.retries import Attempts
from . import errors, parts
from .errors import FetchError
from .partial import Partial
from .transfer import Transfer
from .wire import Stopped, Wire

# A cut loses what is being read into the buffer. It starts small and doubles on a fast connection, so that
# one which is cut often makes progress too, and a fast one costs few calls for each MiB.
SMALLEST = 64 * 1024
LARGEST = 256 * 1024  # more was measured not to be faster, and costs memory and what a kill loses
_QUICK = 0.25  # seconds for a buffer

PROGRESS = 16 * 1024  # bytes since the cut before: then the retries count from one again


class Download:
    """One file's way over the network into its partial."""

    def __init__(
        self,
        partial: Partial,
        transfer: Transfer,
        wire: Wire,
        restarted: Callable[[Transfer], Transfer],
    ) -> None:
        """restarted: told that the bytes so far are wrong; gives the transfer that grows from here on."""
        self._file = transfer.file
        self._partial = partial
        self._transfer = transfer
        self._wire = wire
        self._restarted = restarted
        self._is_second = False
        self._host = addresses.host(self._file.url)

    def run(self) -> Transfer:
        """Fetch what is missing, and verify all of it.

        Returns the transfer that is whole in the end. Raises FetchError, OSError for the disk, Stopped.
        """
        while True:
            self._fetch()
            found = self._partial.hexdigest()
            if found == self._file.sha256:
                return self._transfer
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
        self._transfer = self._restarted(self._transfer)

    def _fetch(self) -> None:
        """Until the last byte is there, through all cuts."""
        attempts = Attempts(self._wire.retries, self._wire.stop)
        is_all = False
        while not is_all and self._partial.size != self._transfer.total:
            before = self._partial.size
            try:
                is_all = self._request()
            except HttpError as error:
                self._look_for_stop()
                try:
                    attempts.failed(error, progress=self._partial.size - before >= PROGRESS)
                except HttpError:
                    self._look_for_stop()
                    raise self._given_up(error) from None
                self._look_for_stop()

    def _request(self) -> bool:
        """Ask for what is missing, and take what comes; whether the server says that this is all."""
        have = self._partial.size
        headers = {"Accept-Encoding": "identity"}
        if have:
            # Without If-Range: mirrors of one file differ in their ETags, and then all of it would come
            # again at every cut. Whether it still is the same file, the hash says in the end.
            headers["Range"] = f"bytes={have}-"
        try:
            response = self._wire.session.get(
                self._file.url, headers=headers, timeout=self._wire.silence, attempts=1, file=True
            )
        except HttpError as error:
            if error.status != 416 or not have:
                raise
            if parts.size_of_all(error.headers) == have:
                return True
            self._begin_again(self._given_up(error))
            return False
        self._wire.listen(response)
        try:
            self._look_for_stop()
            skip, total = parts.place(response, have)
            self._check(total)
            return self._read(response, skip, total)
        finally:
            self._wire.forget(response)

    def _check(self, total: int | None) -> None:
        """The size that the server names against the one that the index named. Raises FetchError."""
        if total is None:
            return
        if self._file.size is not None and total != self._file.size:
            raise FetchError(
                f"{self._file.name} from {self._host} is not the file that was asked for: it has"
                f" {total} bytes, and should have {self._file.size}",
                "its server changed the file, or somebody in between did",
            )
        self._transfer.learn_total(total)

    def _read(self, response: requests.Response, skip: int, total: int | None) -> bool:
        """Append the body, less what is there already. Raises HttpError where it breaks off."""
        partial, transfer, wire = self._partial, self._transfer, self._wire
        size = SMALLEST
        while True:
            started = time.monotonic()
            data = self._piece(response, size)
            if not data:
                break
            wire.count(len(data))
            if skip:
                skipped = min(skip, len(data))
                skip -= skipped
                data = data[skipped:]
            if data:
                partial.append(data)
                transfer.grown(partial.size)
            self._look_for_stop()
            if self._file.size is not None and partial.size > self._file.size:
                break  # more than there can be: the hash will say so
            quick = time.monotonic() - started < _QUICK
            size = min(size * 2, LARGEST) if quick else max(size // 2, SMALLEST)
        if total is not None and partial.size < total:
            raise HttpError(f"{self._host} cut the connection", again=True)
        return True

    def _piece(self, response: requests.Response, size: int) -> bytes:
        try:
            data: bytes = response.raw.read(size, decode_content=False)
        except http_errors.FAILURES as error:
            raise http_errors.of_exception(self._file.url, error) from None
        return data

    def _look_for_stop(self) -> None:
        if self._wire.stop.is_set():
            raise Stopped

    def _given_up(self, error: HttpError) -> FetchError:
        have, total = self._partial.size >> 20, self._transfer.total
        far = f" after {have} MiB" + (f" of {total >> 20}" if total else "") if have else ""
        kept = "downloads are kept, and the next run continues from there" if have else ""
        return FetchError(
            f"{self._file.name} could not be fetched{far}: {error}", error.hint or kept
        )
