"""Messages between a worker's process and its parent: JSON objects, each on a marked line of its own."""

import contextlib
import json
import os
import sys

from ..facts import dumps, plain

MARK = b"@envcheck "
LENGTH = 400  # characters of a reason


class Ended(Exception):
    """Raised in a child: the work ends here, with this outcome and one sentence that says why."""

    outcome = "error"


class Writer(object):
    """The child's side: writes to a file descriptor of its own, past every buffer."""

    def __init__(self, descriptor, mark=MARK, loses=False):
        """loses: a message for which a full pipe has no room is lost, and the child does not wait."""
        self._descriptor = descriptor
        self._mark = mark
        self._loses = loses

    def begin(self, **facts):
        self.send({"begin": facts})

    def stage(self, name, key=""):
        self.send({"stage": name, "of": key})

    def result(self, value, key=""):
        self.send({"result": value, "of": key})

    def done(self, **facts):
        self.send({"done": facts})

    def send(self, message):
        data = encode(message, self._mark)
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                if self._loses:
                    return
                raise


def cookie_mark(cookie):
    """The mark of messages that stand among foreign output."""
    return ("@envcheck-%s " % cookie).encode("ascii")


def encode(message, mark=MARK):
    """The bytes of a message: a line of its own even where a library has left half a line behind."""
    return b"\n" + mark + dumps(message).encode("ascii") + b"\n"


def read(lines, mark=MARK):
    """The messages (dict) in lines of bytes; anything else in them is skipped."""
    for line in lines:
        if line.startswith(mark):
            try:
                message = json.loads(line[len(mark) :].decode("utf-8"))
            except (ValueError, RecursionError):
                continue  # cut off by the child's death, or too deep
            if isinstance(message, dict):
                yield message


def one_line(text, length=LENGTH):
    """The text on one line, not too long, without anything that a terminal obeys."""
    try:
        if isinstance(text, bytes):
            text = text[: 20 * length].decode("utf-8", "replace")
        text = plain(str(text)[: 20 * length])
    except Exception as error:  # its own __str__ fails
        text = "%s, which cannot be shown: %s" % (type(text).__name__, type(error).__name__)
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())[:length]


def describe(error):
    """An exception as one line: "ValueError: no such row"."""
    text = one_line(error)
    return one_line("%s: %s" % (type(error).__name__, text) if text else type(error).__name__)


def flush():
    """Flush stdout and stderr, which a framework may have replaced by something that raises."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
