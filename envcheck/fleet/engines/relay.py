"""What goes before a script that a machine's Python reads from standard input, and how its answer is read.

The script runs in a child. Its output comes back packed between two marks: what a login shell or sudo prints
lies outside of them. guard.sh ends both at the deadline, and when whoever asked is gone; whatever they leave
behind ends with them.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from functools import cache
from math import ceil
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal, NamedTuple

import msgspec

from ... import json_text

LARGEST = 16 << 20  # bytes of an answer on its way, packed; a Snapshot takes some ten thousand
_GRACE = 5.0  # seconds between asking what runs there to end, and killing it
_STARTING = 2.0  # seconds that a Python may take to start
# Seconds after a machine's deadline until its shell has ended all that it started, and reported it.
MARGIN = 2 * _GRACE + _STARTING + 8.0

_GUARD = (
    Path(__file__).parent.parent / "ansible_content" / "roles" / "envcheck" / "files" / "guard.sh"
)

# Python 2.7 can read it, too: it says that it is too old.
_RELAY = '''\
import os, sys

def envcheck_relay(cookie, limit, largest):
    """Goes on in a child, whose output this process packs and sends; it does not come back here."""
    number = 0
    while number < 3:  # closed standard streams: no pipe must get their numbers
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)

    def send(text):
        import select

        data = text.encode("ascii")
        while data:
            try:
                data = data[os.write(1, data) :]
            except OSError as error:
                if error.errno not in (4, 11):
                    os._exit(0)  # the reader is gone
                select.select([], [1], [], 1)

    if sys.version_info < (3, 6):
        send("\\n@%s old %d.%d\\n" % ((cookie,) + sys.version_info[:2]))
        os._exit(0)
    ours, theirs = os.pipe(), os.pipe()
    try:
        child = os.fork()
    except OSError as error:
        send("\\n@%s not-started %s\\n" % (cookie, ascii(error.strerror)))
        os._exit(0)
    if child == 0:
        os.dup2(ours[1], 1)
        os.dup2(theirs[1], 2)
        for one in ours + theirs:
            os.close(one)
        return
    import base64, json, select, zlib

    os.close(ours[1])
    os.close(theirs[1])
    out, errors = ours[0], theirs[0]
    watched = select.poll()
    watched.register(out, select.POLLIN)
    watched.register(errors, select.POLLIN)
    packer = zlib.compressobj(6)
    packed, size, said, status, open_ends = [], 0, b"", None, 2
    while open_ends and size <= limit:
        events = watched.poll(200 if status is None else 50)
        for one, event in events:
            data = os.read(one, 1 << 16)
            if not data:
                watched.unregister(one)
                open_ends -= 1
            elif one == errors:
                said = (said + data)[-4000:]
            else:
                size += len(data)
                packed.append(packer.compress(data))
        if status is None:
            found, status = os.waitpid(child, os.WNOHANG)
            status = status if found else None
        elif not events:
            break  # it is over, and something that it left behind keeps its output open
    packed.append(packer.flush())
    data = base64.b64encode(b"".join(packed)).decode("ascii")
    code = None
    if size > limit or len(data) > largest:
        data = ""
    else:
        status = os.waitpid(child, 0)[1] if status is None else status
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    header = {
        "outcome": "exited" if data else "flooded",
        "code": code,
        "said": said.decode("utf-8", "replace"),
    }
    begin = "\\n@%s begin %s\\n" % (cookie, json.dumps(header))
    send(begin + data + "\\n@%s end\\n" % cookie)
    os._exit(0)

'''


class Relayed(NamedTuple):
    """What came of a script on a machine. outcome: "exited" (whatever its code), "timed-out", "flooded";
    "old": the Python is too old; "not-started"; "none": there is no Python; "damaged"; "garbled":
    none of the relay's marks came. words: of its standard error, or what came in place of an answer."""

    outcome: str
    code: int | None = None
    output: bytes = b""
    words: str = ""


def before(script: bytes, cookie: str, limit: int) -> bytes:
    """The script, with the relay before it. limit: bytes of its output. Same inputs, same bytes."""
    call = f"envcheck_relay({cookie!r}, {int(limit)}, {LARGEST - 8192})\n"
    return (_RELAY + call).encode() + script


def read(answer: bytes, cookie: str, limit: int) -> Relayed:
    """What came back from a machine, which may be anything. ``limit``: bytes that are unpacked at most."""
    mark = b"@%s " % cookie.encode()
    at = answer.find(mark)
    if at < 0:
        return Relayed("garbled", words=_words(answer))
    line, _, body = answer[at + len(mark) :].partition(b"\n")
    kind, _, rest = line.strip().partition(b" ")
    if kind in (b"none", b"timed-out"):
        return Relayed(kind.decode())
    if kind in (b"old", b"not-started"):
        words = rest[:_LONGEST_WORDS].decode("ascii", "replace").strip()[:200]
        return Relayed(kind.decode(), words=words.strip("'"))
    ended = body.find(mark + b"end")
    if kind != b"begin" or ended < 0:
        return Relayed("damaged", words="the answer is cut off")
    try:
        header = json_text.read(rest, _RelayHeader)
        packed = base64.b64decode(body[:ended])
        unpacker = zlib.decompressobj()
        output = unpacker.decompress(packed, limit + 1) if packed else b""
    except (json_text.NotReadable, binascii.Error, zlib.error):
        return Relayed("damaged", words="the answer is damaged")
    if len(output) > limit or header.outcome == "flooded":
        return Relayed("flooded")
    if packed and not unpacker.eof:
        return Relayed("damaged", words="the answer is cut off")
    return Relayed(header.outcome, header.code, output, header.said)


class _RelayHeader(msgspec.Struct):
    """What the relay says first. A machine may write anything in its place."""

    outcome: Literal["exited", "flooded"]
    code: Annotated[int, msgspec.Meta(ge=-255, le=255)] | None = None
    said: str = ""


_LONGEST_WORDS = 4000  # characters of what came instead of an answer


def _words(answer: bytes) -> str:
    return answer[-_LONGEST_WORDS:].decode("utf-8", "replace").strip()


def shell(pythons: str, arguments: Sequence[str], cookie: str, deadline: float) -> str:
    """The command line for a machine's sh: the first of these Pythons that is there reads the script.
    pythons: words for a shell, quoted where they need it. deadline: seconds."""
    words = " ".join(quote(word) for word in ["-", *arguments])
    limit = ceil(deadline + _STARTING)
    # machines of one run may share their processes, as containers do: each ends its own
    return (
        f"RUN={cookie}-$$-; LIMIT={limit}; GRACE={_GRACE:.0f}; LATE='@{cookie} timed-out'; {_guard()} "
        f'( for p in {pythons}; do p=$(command -v "$p") || continue; ENVCHECK_RUN=$RUN "$p" {words}; code=$?;'
        " cat > /dev/null; exit $code; done;"  # what it did not read: else the connection breaks
        f" echo; echo '@{cookie} none'; cat > /dev/null ) 2>&1 | head -c {LARGEST};"
        " kill $envcheck_guard; wait $envcheck_guard 2> /dev/null; envcheck_kill KILL; true"
    )


@cache
def _guard() -> str:
    """guard.sh in one line, without its comments."""
    lines = _GUARD.read_text(encoding="utf-8").splitlines()
    return " ".join(line.strip() for line in lines if not line.startswith("#"))
