"""One envcheck at a time in a root, also where the root lies on a network file system.

Two things make the lock. flock: the kernel gives it back when its holder dies, and NFS passes it on to the
server as a lock of the whole file. And ``holder.json``, created exclusively and touched every few seconds:
it says who holds the lock, and it is all there is where flock is not supported or, as on NFS mounted with
``nolock``, does not reach beyond the host.

``filelock`` was considered. Its flock turns into an existence lock on ENOSYS alone, where NFS servers without
a lock manager say ENOLCK and others EOPNOTSUPP; and it does not say who holds a lock.
"""

from __future__ import annotations

import errno
import fcntl
import getpass
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Annotated

import msgspec

from ...exit_codes import Cannot
from .. import durable
from . import guard
from .layout import Root, is_root, now

HEARTBEAT = 2.0  # seconds between two touches of holder.json
# A holder whose process is gone from this host; and one on another host, whose death only its silence shows.
SILENCE_HERE = 3 * HEARTBEAT
SILENCE_ELSEWHERE = 60.0
PAUSE = 0.2  # seconds between two tries

_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}
_UNSUPPORTED = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds the lock. ``since`` is UTC; ``token`` tells this holder from any other."""

    host: str
    user: str
    pid: Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
    since: str
    what: str
    token: str

    def __str__(self) -> str:
        return f"{self.user} on {self.host} (process {self.pid}, {self.what}, since {self.since})"


class Locked(Cannot):
    """Another envcheck holds the lock, and was not waited for any longer."""


class RootLock:
    """The lock of a root, as a context manager.

    what: for those who wait, "envcheck install tensorflow". wait: seconds to wait for another holder; None
    waits until it is over. tell: gets a sentence when waiting begins. prepare: called before each try, to
    make the root where another envcheck has just removed it.

    Whatever changes anything in a root takes its lock first. Raises UsageError for one that another user may
    have prepared, or that a newer envcheck has made.
    """

    def __init__(
        self,
        root: Root,
        what: str,
        *,
        wait: float | None = None,
        tell: Callable[[str], None] = lambda sentence: None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._root = root
        self._what = what
        self._wait = wait
        self._tell = tell
        self._prepare = prepare
        self._handle = -1
        self._token = secrets.token_hex(8)
        self._watched: tuple[object, float] = (None, 0.0)
        self._over = threading.Event()
        self._beating: threading.Thread | None = None

    def __enter__(self) -> RootLock:
        limit = None if self._wait is None else time.monotonic() + self._wait
        told = ""
        try:
            while not self._try():
                holder = read_holder(self._root)
                who = str(holder) if holder else "another envcheck"
                if limit is not None and time.monotonic() >= limit:
                    raise Locked(
                        f"{self._root.path}: {who} is at work here",
                        hint="try again when it is done, or give --wait SECONDS",
                    )
                if who != told:
                    self._tell(f"{self._root.path}: waiting for {who}; Ctrl-C gives up")
                    told = who
                time.sleep(PAUSE)
        except BaseException:
            self._close()
            raise
        self._beating = threading.Thread(target=self._beat, name="lock heartbeat", daemon=True)
        self._beating.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._beating is not None:
            self._beating.join()
        if self.is_ours():
            self._root.holder.unlink(missing_ok=True)
        self._close()

    def is_ours(self) -> bool:
        """Whether it still is: on a host that slept for minutes, another one may have taken it over."""
        holder = read_holder(self._root)
        return holder is not None and holder.token == self._token

    def _try(self) -> bool:
        self._prepare()
        try:
            guard.check(self._root)
            is_root(self._root.path)  # raises for a newer layout
            supported = self._flock()
            if supported is None:
                return False
            return self._become_holder(supported)
        except FileNotFoundError:
            if self._root.own.is_dir():
                return False  # the root was removed and made again in between
            raise Cannot(
                f"{self._root.path}: there is no environment of envcheck's any more"
            ) from None
        except OSError as error:
            raise Cannot(
                f"{error.filename or self._root.lock}: cannot be locked: {error.strerror}",
                hint=durable.advice(error) or "envcheck needs to write there",
            ) from None

    def _flock(self) -> bool | None:
        """True: got it. False: there is no flock here. None: another process has it."""
        if self._handle < 0:
            self._handle = durable.opened(self._root.lock, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _BUSY:
                if not self._is_the_file():
                    self._close()
                return None
            if error.errno in _UNSUPPORTED:
                return False
            raise
        if self._is_the_file():
            return True
        self._close()  # of a root that was removed: whoever makes it again has another file
        return None

    def _is_the_file(self) -> bool:
        try:
            there = self._root.lock.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._handle))

    def _become_holder(self, has_flock: bool) -> bool:
        path = self._root.holder
        if path.exists() and self._is_dead(has_flock):
            path.unlink(missing_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            return False
        try:
            with durable.named(path):
                os.write(handle, msgspec.json.encode(self._myself()))
                os.fsync(handle)
        except OSError:  # the disk is full
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)
        return True

    def _is_dead(self, has_flock: bool) -> bool:
        """Whether the holder that is written down is no more."""
        holder = read_holder(self._root)
        here = holder is not None and holder.host == socket.gethostname()
        if here and has_flock:
            return True  # it would have the flock, if it lived
        silence = self._silence()
        if holder is None:  # killed (or out of disk) between creating the file and writing into it
            return has_flock or silence > SILENCE_HERE
        if here and not _runs(holder.pid):
            return silence > SILENCE_HERE  # not at once: another container may have the host's name
        return silence > SILENCE_ELSEWHERE

    def _silence(self) -> float:
        """Seconds since its heartbeat was last seen to change, by our clock: hosts' clocks differ."""
        seen: object = None
        try:
            # Opened, since NFS asks the server for a file's times then, and may remember them otherwise.
            handle = durable.opened(self._root.holder, os.O_RDONLY)
            try:
                status = os.fstat(handle)
                seen = (status.st_mtime_ns, status.st_ino)
            finally:
                os.close(handle)
        except OSError:
            pass
        if seen != self._watched[0]:
            self._watched = (seen, time.monotonic())
        return time.monotonic() - self._watched[1]

    def _beat(self) -> None:
        while not self._over.wait(HEARTBEAT):
            try:
                os.utime(self._root.holder, follow_symlinks=False)
            except OSError:
                continue  # the file system is away for a moment, or the disk is full

    def _myself(self) -> Holder:
        return Holder(
            host=socket.gethostname(),
            user=_user(),
            pid=os.getpid(),
            since=now(),
            what=self._what,
            token=self._token,
        )

    def _close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def read_holder(root: Root) -> Holder | None:
    """Who is written down as the lock's holder."""
    try:
        return durable.load(root.holder, Holder)
    except (OSError, msgspec.DecodeError):
        return None


def holder_at_work(root: Root) -> Holder | None:
    """Who holds the lock at this moment, as far as can be told without waiting; writes nothing."""
    holder = read_holder(root)
    if holder is None or holder.host != socket.gethostname():
        return holder
    try:
        handle = durable.opened(root.lock, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return holder if error.errno in _BUSY or _runs(holder.pid) else None
    finally:
        os.close(handle)
    return None


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        return f"user {os.getuid()}"
