"""The script for Slurm that drains a node whose driver or GPUs fail. Pure but for reading its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from shlex import join, quote

from ... import __version__
from .slurm_nodes import FORMAT

_TEXT = Path(__file__).with_suffix(".sh")
LOG = "/var/log/envcheck-prolog.log"
AREAS = ("driver", "gpu", "pci")
PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin"


def script(envcheck: Sequence[str], *, limit: float, deadline: float, fail_on: str) -> str:
    """A POSIX shell script. envcheck: the words that start it on a node, an absolute path first. limit: per
    cent of the nodes with GPUs. deadline: seconds. fail_on: "fail" or "degraded"."""
    fails = f"--fail-on={fail_on}"
    doctor = ("doctor", "--level=quick", "--quiet", "--format=json", fails, "--only", *AREAS)
    values = {
        "VERSION": f"envcheck {__version__}",
        "DOCTOR": join([*envcheck, *doctor]),
        "DECIDE": join([*envcheck, "fleet", "slurm-node", fails]),
        "LIMIT": f"{limit:g}",
        "DEADLINE": f"{deadline:.0f}",
        "FORMAT": quote(FORMAT),
        "LOG": LOG,
        "PATH": PLACES,
    }
    text = _TEXT.read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], text)
