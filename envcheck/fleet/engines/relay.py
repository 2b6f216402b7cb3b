"""The command that runs a script on a machine, which its Python reads from standard input, and its answer.

The machine's shell packs what the script prints, between two marks: what a login shell or sudo prints lies
outside of them. guard.sh ends all at the deadline, and when whoever asked is gone; whatever the script
leaves behind ends with it.
"""

from __future__ import annotations

import base64
import zlib
from functools import cache
from math import ceil
from pathlib import Path
from shlex import quote

from ...facts.snapshot import LIMIT
from ..folder import Outcome
from . import Asked, outcomes

LARGEST = 16 << 20  # bytes of an answer on its way, packed; a Snapshot takes some ten thousand
_GRACE = 5.0  # seconds between asking what runs there to end, and killing it
_STARTING = 2.0  # seconds that a Python may take to start
# Seconds after a machine's deadline until its shell has ended all that it started, and reported it.
MARGIN = 2 * _GRACE + _STARTING + 8.0
_WORDS = 4000  # bytes of standard error, or of what came instead of an answer

_FILES = Path(__file__).parent.parent / "ansible_content" / "roles" / "envcheck" / "files"


FLOODED: tuple[Outcome, str] = ("unreadable", "the answer is longer than a Snapshot may be")


def late(deadline: float) -> tuple[Outcome, str]:
    return "timed-out", f"no answer within {deadline:g} s"


def read(
    answer: bytes,
    cookie: str,
    deadline: float,
    errors: str = "",
    code: int | None = None,
    limit: int = LIMIT,
) -> bytes | tuple[Outcome, str]:
    """The JSON that came back from a machine; or, of anything else, what became of the machine, and why.
    errors, code: of the connection. limit: bytes that are unpacked at most."""
    mark = b"@%s " % cookie.encode()
    if mark + b"timed-out" in answer:
        return late(deadline)
    if mark + b"none" in answer:
        return "failed", "there is no python3"
    if len(answer) >= LARGEST:
        return FLOODED
    if mark not in answer:
        return outcomes.of_garbage(f"{_text(answer)}\n{errors}", code)
    _, _, rest = answer.partition(mark + b"begin")
    packed, _, rest = rest.partition(mark + b"end")
    words, over, _ = rest.partition(mark + b"over")
    unpacker = zlib.decompressobj(31)  # of gzip
    try:
        output = unpacker.decompress(base64.b64decode(packed), limit + 1)
        stderr, _, status = _text(words).rpartition("\n")
        ended = int(status) if over else None
    except (ValueError, zlib.error):
        return "unreadable", "the answer is damaged"
    if len(output) > limit:
        return FLOODED
    if ended is None or not unpacker.eof:
        return "unreadable", "the answer is cut off"
    if ended:
        last = outcomes.last(stderr).removeprefix("envcheck-collector: ")
        return "failed", last or f"the collector exited with status {ended}"
    return output if output.startswith(b"{") else outcomes.of_garbage(_text(output), 0)


def _text(words: bytes) -> str:
    return words[-_WORDS:].decode("utf-8", "replace").strip()


def shell(pythons: str, asked: Asked, cookie: str, limit: int = LIMIT) -> str:
    """The command line for a machine's sh: the first of these Pythons that is there reads the script.
    pythons: words for a shell, quoted where they need it. limit: bytes of output."""
    words = " ".join(quote(word) for word in ["-", *asked.arguments])
    # machines of one run may share their processes, as containers do: each ends its own
    given = f"RUN={cookie}-$$-; LIMIT={ceil(asked.deadline + _STARTING)}; GRACE={_GRACE:.0f}"
    # 3: what it says on standard error, and its exit status; 4: the answer
    return (
        f"{given}; LATE='@{cookie} timed-out'; {one_line('guard.sh')} "
        f'( for p in {pythons}; do p=$(command -v "$p") || continue; echo; echo "@{cookie} begin";'
        " { words=$( { { { export ENVCHECK_RUN=$RUN;"
        f' "$p" {words} 2>&3 3>&- 4>&-; printf "\\n%s" "$?" >&3;'
        " cat > /dev/null;"  # what it did not read: else the connection breaks
        f" {{ {asked.afterwards or ':'}; }} 2> /dev/null < /dev/null 3>&- 4>&-; }}; envcheck_kill KILL; }}"
        f" | head -c {limit + 1} | gzip | base64 >&4; }} 3>&1 | tail -c {_WORDS} ); }} 4>&1;"
        f' printf "@{cookie} end %s\\n@{cookie} over\\n" "$words"; exit; done;'
        f" echo; echo '@{cookie} none'; cat > /dev/null ) 2>&1 | head -c {LARGEST};"
        " kill $envcheck_guard; wait $envcheck_guard 2> /dev/null; envcheck_kill KILL; true"
    )


@cache
def one_line(name: str) -> str:
    """A script of ours in one line, without its comments."""
    lines = (_FILES / name).read_text(encoding="utf-8").splitlines()
    return " ".join(line.strip() for line in lines if not line.startswith("#"))
