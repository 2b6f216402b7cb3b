"""Named pipes for workers: messages of work that takes hours."""

import contextlib
import os

MOST = 1 << 16  # bytes of one line


class LinePipe(object):
    """Lines from a child: it holds 64 KiB and fills no disk. Give ``path`` to the child."""

    def __init__(self, folder=None):
        """folder: where it is made; one that is removed whoever is killed. None: the temporary directory."""
        import tempfile  # here: a child that opens a pipe needs none of it

        self._folder = tempfile.mkdtemp(prefix="envcheck-lines-", dir=folder)
        self.path = os.path.join(self._folder, "lines")
        self._rest = b""
        self._skips = False  # the line that is being read is too long
        self._descriptor = _make(self.path)

    def lines(self, most=1 << 20):
        """The whole lines (bytes) that have come since, without their ends; about ``most`` bytes of them."""
        found, read = [], 0
        while self._descriptor is not None and read < most:
            try:
                data = os.read(self._descriptor, MOST)
            except BlockingIOError:
                break
            read += len(data)
            parts = (self._rest + data).split(b"\n")
            if self._skips and len(parts) > 1:
                parts, self._skips = parts[1:], False
            self._rest = parts.pop()
            if self._skips or len(self._rest) > MOST:
                self._rest, self._skips = b"", True
            found += parts
        return found

    def close(self):
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            with contextlib.suppress(OSError):
                os.rmdir(self._folder)


def open_to_write(path, waits):
    """The child's side: a file descriptor. waits: writing waits where the pipe is full; else it fails."""
    return os.open(path, os.O_WRONLY | (0 if waits else os.O_NONBLOCK))


def _make(path):
    os.mkfifo(path, 0o600)
    # For both, so that neither side's opening waits for the other.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)
