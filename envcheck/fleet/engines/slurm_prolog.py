"""The script for Slurm that drains a node by the doctor's exit code. Pure but for reading its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from ... import __version__

_TEXT = Path(__file__).with_suffix(".sh")
PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin"


def script(
    envcheck: Sequence[str],
    *,
    level: str,
    only: Sequence[str],
    deadline: float,
    strict: bool,
    log: str,
) -> str:
    """A POSIX shell script. envcheck: the words that start it on a node, an absolute path first.

    deadline: seconds. strict: a node that could not be looked at is drained, too.
    """
    doctor = [*envcheck, "doctor", "--level", level, *(["--only", *only] if only else [])]
    values = {
        "VERSION": f"envcheck {__version__}",
        "DOCTOR": " ".join(map(quote, doctor)),
        "DEADLINE": f"{deadline:.0f}",
        "STRICT": "yes" if strict else "no",
        "LOG": quote(log),
        "PATH": PLACES,
    }
    text = _TEXT.read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], text)
