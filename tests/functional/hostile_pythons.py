"""What a hostile machine's python3 does: shell scripts, which know the relay's cookie and speak its words."""

from __future__ import annotations

import base64
import zlib

# The cookie stands in what a machine's Python is handed.
_COOKIE = "c=$(sed -n \"s/^envcheck_relay('\\([^']*\\)'.*/\\1/p\" | head -n 1)\n"
LARGE = ("unreadable", "the answer is longer than a Snapshot may be")
HUNG = ("timed-out", "no answer in time")
_LOST = "it is nested too deeply to be a Snapshot"


def _header(shell: str) -> str:
    """A frame whose header is what this shell command writes."""
    return f'{_COOKIE}printf "\\n@%s begin " $c\n{shell}\nprintf "\\nAAAA\\n@%s end\\n" $c'


def _body(data: bytes) -> str:
    """A frame as it should be, with this in it."""
    packed = base64.b64encode(zlib.compress(data)).decode()
    lines = [packed[at : at + 4000] for at in range(0, len(packed), 4000)]
    sent = "\n".join(f"printf %s {line}" for line in lines)
    header = 'printf \'\\n@%s begin {"outcome":"exited","code":0}\\n\' $c'
    return f'{_COOKIE}{header}\n{sent}\nprintf "\\n@%s end\\n" $c'


def hostile(word: str) -> dict[str, tuple[str, tuple[str, str]]]:
    """{kind: (its python3, what is to be said of it)}. word: a number that what stays there would name."""
    damaged = ("unreadable", "the answer is damaged")
    deep = "head -c 200000 /dev/zero | tr '\\0' '['"
    digits = (
        'printf \'{"outcome":"exited","code":\'; head -c 6000 /dev/zero | tr \'\\0\' 9; printf }'
    )
    outcome = "printf '{\"outcome\":\"'; head -c 60000 /dev/zero | tr '\\0' x; printf '\"}'"
    hung = f"setsid sleep {word}1 &\n(trap '' TERM; while :; do sleep {word}2; done) &\nexec sleep {word}3"
    return {
        "bytes": (_header('printf \'{"outcome":"\\377"}\''), damaged),
        "deep header": (_header(f"printf '{{\"x\":'; {deep}"), damaged),
        "digits": (_header(digits), damaged),
        "outcome": (_header(outcome), damaged),
        "deep": (_body(b'{"schema":1,"machine":' + b"[" * 500_000), ("unreadable", _LOST)),
        "bomb": (_body(bytes(100 << 20)), LARGE),
        "no UTF-8": (
            _body(b'{"schema":1,"machine":{"location":"\xff"}}'),
            ("unreadable", "it is not UTF-8: byte 0 cannot be read"),
        ),
        "noise": (
            "cat >/dev/null; printf '\\377' >&2; exit 255",
            ("unreadable", "python3 there said nothing"),
        ),
        "flood": (f"exec yes {word}4", LARGE),
        "hung": (hung, HUNG),
    }
